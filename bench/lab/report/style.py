"""How the report looks: one style sheet, inline, for screens light and dark, phones and paper."""

from __future__ import annotations

from typing import Final

__all__ = ["CSS"]

CSS: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1d21;--soft:#5b636d;--line:#d9dde2;
--faint:#f4f5f7;--warn:#8a3b00;--warnbg:#fff5ec;
--m0:#0b5fa5;--m1:#c2410c;--m2:#6d28a8;--m3:#5b636d;--m4:#3d7a3a;--m5:#8a6a00;--m6:#00707a;--m7:#9d174d}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e9ec;--soft:#9ba5b0;
--line:#343a41;--faint:#1d2126;--warn:#ffb27a;--warnbg:#2c2018;
--m0:#6cb6ff;--m1:#ff9f6b;--m2:#c9a2ff;--m3:#aab2bb;--m4:#86cf81;--m5:#dcb94a;--m6:#5fcbd5;--m7:#ff8fb8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
overflow-wrap:anywhere}
main,header,footer{max-width:1080px;margin:0 auto;padding:0 20px}
header{padding-top:36px}
.kicker{margin:0;color:var(--soft);font-size:14px}
h1{font-size:clamp(20px,2.5vw,27px);line-height:1.32;margin:8px 0 14px;font-weight:650;
letter-spacing:-.012em;text-wrap:pretty}
h2{font-size:22px;line-height:1.3;margin:52px 0 4px;padding-top:20px;
border-top:2px solid var(--ink)}
h3{font-size:17px;margin:34px 0 4px}
p{margin:6px 0 12px;max-width:74ch;text-wrap:pretty}
.lead{font-size:18px}
.note,figcaption,caption,.legend,footer,dl.facts{color:var(--soft);font-size:14px}
.alert{border-left:4px solid var(--warn);background:var(--warnbg);color:var(--warn);
padding:10px 14px;margin:14px 0;max-width:none}
.alert ul{margin:4px 0 0;padding-left:20px}
dl.facts{display:flex;flex-wrap:wrap;gap:6px 28px;margin:0 0 8px}
dl.facts div{max-width:100%}
dt{font-size:12.5px;color:var(--soft)}
dd{margin:0;color:var(--ink);font-variant-numeric:tabular-nums}
nav{margin:14px 0}nav ul{columns:13em auto;padding-left:20px;margin:4px 0}
a{color:inherit}
figure{margin:14px 0 8px}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
fill:var(--soft);font-variant-numeric:tabular-nums}
svg .name{fill:var(--c,var(--ink))}
svg .axis{fill:var(--ink)}
svg .strong{font-weight:600}
svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
svg .grid{stroke:var(--line);stroke-width:1;fill:none}
svg .rule{stroke:var(--soft);stroke-width:1;fill:none;stroke-dasharray:2 3}
svg .base{stroke:var(--soft);stroke-width:1;fill:none}
svg .band{fill:var(--faint)}
svg .curve{fill:none;stroke:var(--c);stroke-width:1.7;stroke-linejoin:round;stroke-linecap:butt}
svg .product{stroke-width:2.6}
svg .mark{fill:var(--paper);stroke:var(--c);stroke-width:1.6}
svg .full{fill:var(--c)}
svg .whisker{stroke:var(--c);stroke-width:1.2;fill:none}
svg .lead{stroke:var(--c);stroke-width:.8;fill:none;opacity:.65}
svg .late{stroke:var(--ink);stroke-width:.9;fill:none}
svg .soon{stroke:var(--soft);stroke-width:.7;fill:none}
svg .drop{stroke:var(--soft);stroke-width:.9;fill:none}
.c0{--c:var(--m0)}.c1{--c:var(--m1)}.c2{--c:var(--m2)}.c3{--c:var(--m3)}
.c4{--c:var(--m4)}.c5{--c:var(--m5)}.c6{--c:var(--m6)}.c7{--c:var(--m7)}
.narrow{display:none;max-width:560px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 20px;padding:0;margin:10px 0}
.legend li{display:flex;align-items:center;gap:8px;color:var(--ink);max-width:100%}
.legend svg{width:58px;height:16px;flex:none}
.legend b{font-weight:600;min-width:1.1em;text-align:right}
.scroll{overflow-x:auto;margin:14px 0 34px;border-bottom:1px solid var(--line)}
.scroll:focus-visible{outline:2px solid var(--m0);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:14.5px;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 8px}
caption span{display:inline-block;position:sticky;left:0;width:min(78ch,100vw - 40px)}
caption b{color:var(--ink);font-weight:650;font-size:15px}
th,td{text-align:right;padding:6px 9px;vertical-align:top;white-space:nowrap;
overflow-wrap:normal;
border-top:1px solid var(--line)}
thead th{vertical-align:bottom;border-top:0;border-bottom:1.5px solid var(--ink);font-weight:600;
font-size:13px;white-space:normal;min-width:5.4em}
thead th .unit{color:var(--soft);font-weight:400}
th:first-child,td:first-child{text-align:left;padding-left:0;position:sticky;left:0;
background:var(--paper);z-index:1}
tbody th{font-weight:600;white-space:normal;min-width:12.2em;max-width:17em;
overflow-wrap:anywhere}
tbody th.ref{font-weight:400}
table.tight th,table.tight td{padding:6px 5px}.tight tbody th{min-width:8.5em}
.tight th:first-child{padding-left:0}
.tight{font-size:14px}.tight small{font-size:11.5px}
.tight thead th{font-size:12.5px;min-width:4.6em}
.slim{max-width:660px}
td small{display:block;color:var(--soft);font-size:12px;line-height:1.35}
td .word{white-space:normal;max-width:7.5em;margin-left:auto}td .word b{color:var(--ink)}
td b{font-weight:650}
pre{background:var(--faint);padding:12px 14px;overflow-x:auto;font:13px/1.5 ui-monospace,
"DejaVu Sans Mono",Menlo,Consolas,monospace;margin:8px 0;white-space:pre-wrap}
details{margin:12px 0}summary{cursor:pointer;font-weight:600}
ul.plain{padding-left:20px;margin:6px 0;max-width:78ch}
ul.plain li{margin:4px 0}
footer{padding-top:26px;padding-bottom:48px}
@media (max-width:720px){
main,header,footer{padding-left:16px;padding-right:16px}
body{font-size:15.5px}
.wide{display:none}.narrow{display:block}
caption span{width:calc(100vw - 32px)}
th,td{padding:6px 8px}tbody th{min-width:7.5em;max-width:9.5em;font-size:13.5px}
h2{margin-top:40px}
}
@media print{
:root{--paper:#fff;--ink:#000;--soft:#444;--line:#bbb;--faint:#f2f2f2;--warn:#000;--warnbg:#fff;
--m0:#000;--m1:#000;--m2:#000;--m3:#000;--m4:#000;--m5:#000;--m6:#000;--m7:#000}
.wide{display:block}.narrow{display:none}
body{font-size:9.5pt;line-height:1.4}main,header,footer{max-width:none;padding-left:0;padding-right:0}
header{padding-top:0}h1{font-size:15pt}.lead{font-size:10.5pt}h2{font-size:13pt;margin-top:20px;padding-top:8px}
h3{font-size:11pt;margin-top:16px}.note,figcaption,caption,.legend,dl.facts{font-size:8.5pt}
caption b{font-size:9pt}.legend{gap:2px 14px}p,li{orphans:3;widows:3}
.scroll{overflow:visible;margin:8px 0 18px}table,tbody th{font-size:8pt}th,td{padding:2px 5px}
thead th{min-width:0;font-size:7.5pt}
tbody th{min-width:8.5em;max-width:12em;overflow-wrap:break-word}
td small{font-size:7pt}
.tight,.tight thead th,.tight tbody th{font-size:7pt;min-width:0}.tight small{font-size:6.5pt}
table.tight th,table.tight td{padding:2px 3px}.tight tbody th{min-width:7.5em;max-width:9em}
table.tight{table-layout:fixed}table.tight thead th{overflow-wrap:anywhere;hyphens:auto}
.tight th:first-child{width:12%}table.tight td,table.tight td small{white-space:normal}
summary{break-after:avoid}
.scroll,figure,tr,pre{break-inside:avoid}h2,h3,caption{break-after:avoid}
details>summary{list-style:none}details::details-content{content-visibility:visible;height:auto}
}
"""

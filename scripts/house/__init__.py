"""The house: what stands behind `scripts/demo`, `test`, `check`, `fix` and `lock`.

Standard library only, for it runs before anything is installed.
"""

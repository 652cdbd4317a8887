"""An independent oracle for ELMo: a plain float64 NumPy model (`elmo`), writers of random models (`make`), its tests.

Nothing here imports polyseme. Everything is written from the description of the published formats, so a number
on which the library and this package agree was computed twice, by two different programs.
"""

"""polyseme in other libraries: one file for each, imported only when you import it.

`import polyseme` needs none of them. Each file needs one extra of the same name: `pip install 'polyseme[sklearn]'`.
"""

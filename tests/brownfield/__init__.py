"""Real configurations taken over: every sample switch as found, wanted RoCE, provisioned, judged and taken back.

`samples` finds and sorts the files, `bases` completes fragments, `klish` reads the one that is a command line,
`inventory` asks for RoCE, `compare` judges what stayed and shares no code with the product, `judge` runs the verbs
over SSH, `quick` the same without, `table` prints. `python -m tests.brownfield` writes the table.
"""

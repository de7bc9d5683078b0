"""Knowledge tests: the file of questions, the measures of a ranking, the baseline to compare with.

`app/evaluation` asks the questions, `cli/commands/evaluating` prints the report.
Never here: files, servers, or how a question is searched.
"""

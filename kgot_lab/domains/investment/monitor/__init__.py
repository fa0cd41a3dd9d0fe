"""An investment graph that runs on: news is read into it, signals are decided upon, and briefings are sent
once.

A tick has four stages, each of which may be stopped anywhere and done again: `gather` takes in what news
there is, `update` asks a model what each item states and writes that to the graph, `decide` loads what each
user holds and posts the briefings that are called for, `deliver` sends what waits in the outbox. Accounts are
loaded after the model was asked, so that nothing of them can stand in a prompt. Nothing here is financial
advice: a briefing only repeats what a graph was told.
"""

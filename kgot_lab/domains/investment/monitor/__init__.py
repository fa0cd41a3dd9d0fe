"""Keep an investment graph up to date: read news into it, decide on signals, and send each briefing once.

A tick has four stages, each of which can be interrupted anywhere and repeated. `gather` stores new items,
`update` asks a model what each item states and writes that to the graph, `decide` loads each user's holdings
and posts briefings, and `deliver` sends what waits in the outbox. Accounts are loaded after the model was
called, so that none of their data can be in a prompt. Nothing here is financial advice: a briefing only
repeats what the graph was told.
"""

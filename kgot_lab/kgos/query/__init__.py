"""Named questions to a graph, with arguments and help texts, for the command line and for assistants."""

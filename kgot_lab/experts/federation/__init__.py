"""One expert asks another on another server: signed questions, signed answers with their provenance, and
experts to take over.

A server has a key (`keys`) and a list of those it knows (`peers`); only these are asked or answered. What
goes over the line is an envelope (`envelope`), which is signed for one recipient, valid for minutes and
accepted once (`signing`, `nonces`). The client (`asking`) always comes back in time, with an answer or a
reason; the routes of a server call `answering`. A question that came from another server is answered where it
arrives and never passed on, so that none goes in circles. Signed is not secret: only https hides the words.
"""

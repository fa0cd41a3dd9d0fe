"""Federation: signed questions to experts on other servers, and signed answers with provenance.

A server has a key (`envelope`) and a list of known peers (`signing`), and only these are asked or answered. A
message is an envelope, signed for one recipient, valid for minutes and accepted once. The client
(`delegation`) always returns in time, with an answer or a reason. A question from another server is answered
where it arrives and never forwarded, so that none goes in circles. Messages are signed but not encrypted, so
only https keeps them secret. Experts can also be imported (`marketplace`).
"""

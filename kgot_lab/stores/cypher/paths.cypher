MATCH (title)-[said:$says]->(place)
OPTIONAL MATCH (place)-[:$mentions]->(thing)
WITH starts, given, title, place, said, collect(DISTINCT thing.id) AS names
OPTIONAL MATCH (title)-[fact]-(other)
  WHERE other.id IN starts AND other.id <> title.id AND NOT type(fact) IN ["$says", "$mentions"]
WITH starts, given, title, place, said, names, collect(CASE WHEN fact IS NULL THEN null ELSE {start: other.id, place: "",
  sentence: coalesce(fact.sentence, ""), source: coalesce(fact.source, ""), relation: type(fact),
  subject: startNode(fact).id, object: endNode(fact).id, worth: $fact_score} END) AS facts
WITH starts, collect({start: title.id, place: place.id, sentence: coalesce(said.sentence, ""), source: coalesce(said.source, ""),
  relation: "", subject: "", object: "", names: names, facts: facts,
  worth: head([each IN given WHERE each[0] = place.id | each[1]])}) AS told
UNWIND told + [{start: "", place: "", sentence: "", source: "", worth: 0.0, facts: []}] AS last
UNWIND [each IN told WHERE each.start IN starts] + last.facts AS first
WITH first, last, CASE WHEN last.start = "" OR first.relation <> "" THEN [""]
  WHEN last.start = first.start OR last.place = first.place THEN []
  ELSE [each IN first.names WHERE each <> first.start AND (each = last.start OR each IN last.names)] END AS joints
UNWIND joints AS joint
RETURN DISTINCT $columns
ORDER BY worth DESC, $order LIMIT

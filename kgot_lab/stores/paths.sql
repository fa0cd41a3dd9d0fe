WITH starts(id) AS (VALUES {starts}),
given(place, worth) AS (VALUES {scored_sentences}),
told(title, place, sentence, origin, worth) AS MATERIALIZED (
  SELECT edges.source, given.place, {told_columns}, CAST(given.worth AS double precision)
  FROM given JOIN edges ON edges.target = given.place AND edges.type = '{says}'),
mention(place, name) AS MATERIALIZED (
  SELECT edges.source, edges.target FROM given JOIN edges ON edges.source = given.place AND edges.type = '{mentions}'),
touch(place, title, name) AS MATERIALIZED (
  SELECT told.place, told.title, mention.name FROM told JOIN mention ON mention.place = told.place
  UNION SELECT place, title, title FROM told),
paths({columns}) AS (
  SELECT a.title, a.place, a.sentence, a.origin, '', '', '', '', '', '', '', '', a.worth
  FROM starts JOIN told a ON a.title = starts.id
  UNION SELECT a.title, a.place, a.sentence, a.origin, '', '', '', touch.name, b.title, b.place, b.sentence, b.origin, a.worth + b.worth
  FROM starts JOIN told a ON a.title = starts.id JOIN mention ON mention.place = a.place AND mention.name <> a.title
  JOIN touch ON touch.name = mention.name JOIN told b ON b.place = touch.place AND b.title = touch.title
  WHERE b.title <> a.title AND b.place <> a.place
  UNION {facts_from}
  UNION {facts_to})
SELECT {columns} FROM paths ORDER BY worth DESC, {order} LIMIT {limit}

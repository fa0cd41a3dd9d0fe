WITH RECURSIVE wanted(name, pattern) AS (VALUES {wanted}),
same(name, id) AS (SELECT wanted.name, nodes.id FROM wanted JOIN nodes ON lower(nodes.id) = lower(wanted.name)),
found(id) AS (SELECT id FROM same UNION SELECT nodes.id FROM wanted JOIN nodes
  ON lower(nodes.id) LIKE lower(wanted.pattern) ESCAPE '!' WHERE wanted.name NOT IN (SELECT name FROM same)),
near(id, hop) AS (SELECT id, 0 FROM found UNION
  SELECT CASE WHEN edges.source = near.id THEN edges.target ELSE edges.source END, near.hop + 1
  FROM near JOIN edges ON edges.source = near.id OR edges.target = near.id WHERE near.hop < {farther_hops})
SELECT edges.source AS subject, edges.type AS relation, edges.target AS object, edges.properties
FROM near JOIN edges ON edges.source = near.id OR edges.target = near.id
GROUP BY edges.source, edges.type, edges.target, edges.key ORDER BY min(near.hop)

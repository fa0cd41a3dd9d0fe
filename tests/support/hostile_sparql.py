"""What a hostile or confused model could write in SPARQL."""

from support.hostile import (
    HIDDEN_WRITES,
    HOST_PLACES,
    NESTED,
    RUNAWAY,
    SCHEMA_CHANGES,
    TRICKS,
    TWO,
    several,
)

HOSTILE_SPARQL = [
    *several(
        HIDDEN_WRITES,
        insert="INSERT DATA { :Ada :age 1 }",
        delete_where="DELETE WHERE { ?s ?p ?o }",
        modify="DELETE { ?s :age ?o } INSERT { ?s :age 1 } WHERE { ?s :age ?o }",
        after_a_prologue="PREFIX x: <urn:x>\nBASE <urn:y>\nINSERT DATA { :Ada :age 1 }",
        after_a_query="SELECT * WHERE { ?s ?p ?o } INSERT DATA { :Ada :age 1 }",
        lower_case="insert data { :Ada :age 1 }",
        clear="CLEAR ALL",
        drop="DROP SILENT ALL",
    ),
    *several(
        HOST_PLACES,
        service="SELECT * WHERE { SERVICE <HOST_URL> { ?s ?p ?o } }",
        silent_service="SELECT * WHERE { ?s ?p ?o SERVICE SILENT <HOST_URL> { ?a ?b ?c } }",
        service_by_variable="SELECT * WHERE { BIND(<HOST_URL> AS ?g) SERVICE ?g { ?s ?p ?o } }",
        from_the_web="SELECT * FROM <HOST_URL> WHERE { ?s ?p ?o }",
        from_a_file="SELECT * FROM <file:///SECRET_FILE> WHERE { ?s ?p ?o }",
        graph="SELECT * WHERE { GRAPH <file:///SECRET_FILE> { ?s ?p ?o } }",
    ),
    *several(
        HOST_PLACES, "write",
        load="LOAD <HOST_URL>",
        load_a_file="LOAD <file:///SECRET_FILE>",
        load_silently="LOAD SILENT <file:///SECRET_FILE> INTO GRAPH <urn:g>",
        service_in_an_update="INSERT { ?s ?p ?o } WHERE { SERVICE <HOST_URL> { ?s ?p ?o } }",
    ),
    *several(
        NESTED,
        update_in_a_subquery="SELECT * WHERE { { INSERT DATA { :Ada :age 1 } } }",
        update_in_exists="SELECT * WHERE { ?s ?p ?o FILTER EXISTS { DELETE WHERE { ?s ?p ?o } } }",
        service_in_optional="ASK { OPTIONAL { SERVICE <HOST_URL> { ?s ?p ?o } } }",
        service_in_a_subquery="SELECT * WHERE { { SELECT ?s WHERE { MINUS { SERVICE <HOST_URL> { ?s ?p ?o } } } } }",
    ),
    *several(
        SCHEMA_CHANGES, "write",
        create_graph="CREATE GRAPH <urn:evil>",
        copy="COPY DEFAULT TO GRAPH <urn:evil>",
        move="MOVE DEFAULT TO GRAPH <urn:evil>",
        other_graph="INSERT DATA { GRAPH <urn:evil> { :a :b :c } }",
        with_a_graph="WITH <urn:evil> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    ),
    *several(
        RUNAWAY,
        cross_product="SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
        paths="SELECT (COUNT(*) AS ?n) WHERE { ?a (:next|^:next|:livesIn)* ?b . ?c (:next|^:next)* ?d . ?e (:next|^:next)+ ?f }",
        big_rows="SELECT * WHERE { ?a ?b ?c . ?d ?e ?f }",
    ),
    *several(
        RUNAWAY, "write",
        many_triples="INSERT { [] :evil ?a , ?d , ?g } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
    ),
    *several(
        TWO,
        update_after_a_query="SELECT * WHERE { ?s ?p ?o } ; DELETE WHERE { ?s ?p ?o }",
        two_updates="INSERT DATA { :Ada :age 1 } ; DELETE WHERE { ?s ?p ?o }",
        two_queries="ASK {} SELECT * WHERE { ?s ?p ?o }",
    ),
    *several(
        TRICKS,
        escaped_word="\\u0049NSERT DATA { :Ada :age 1 }",
        escaped_service="SELECT * WHERE { \\u0053ERVICE <HOST_URL> { ?s ?p ?o } }",
        comment="# SELECT\nDELETE WHERE { ?s ?p ?o }",
        comment_in_a_name="SELECT * WHERE { ?s <urn:#> ?o . SERVICE#x\n<HOST_URL> { ?s ?p ?o } }",
        quotes='SELECT * WHERE { ?s ?p """ " \\""" . SERVICE <HOST_URL> { ?s ?p ?o } #""" }',
        carriage_return="# SELECT\rDELETE WHERE { ?s ?p ?o }",
        byte_order_mark="\ufeffINSERT DATA { :Ada :age 1 }",
    ),
]  # fmt: skip

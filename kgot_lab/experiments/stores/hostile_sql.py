"""What a hostile or confused model could write in SQL: to both stores, to SQLite, to PostgreSQL."""

from kgot_lab.experiments.stores.hostile import CALLS, HIDDEN_WRITES, HOST_PLACES, NESTED, RUNAWAY, SCHEMA_CHANGES, TRICKS, TWO, several

_BOTH = [
    *several(
        HIDDEN_WRITES,
        delete="DELETE FROM edges",
        cte="WITH gone AS (DELETE FROM edges RETURNING source) SELECT * FROM gone",
        cte_update="WITH x AS (UPDATE nodes SET properties = '{}' RETURNING id) SELECT id FROM x",
        insert_returning="INSERT INTO nodes (id, labels, properties) VALUES ('Eve', '[]', '{}') RETURNING id",
        select_into="SELECT * INTO evil FROM nodes",
        explain="EXPLAIN ANALYZE DELETE FROM edges",
        lower_case="with x as (delete from edges returning source) select * from x",
    ),
    *several(
        NESTED,
        delete_in_a_subquery="SELECT * FROM (DELETE FROM edges RETURNING source) AS gone",
        cte_of_a_cte="WITH a AS (SELECT 1), b AS (WITH c AS (DELETE FROM edges RETURNING source) SELECT * FROM c) SELECT * FROM b",
    ),
    *several(
        SCHEMA_CHANGES, "write",
        drop="DROP TABLE nodes",
        create="CREATE TABLE evil (x TEXT)",
        alter="ALTER TABLE nodes ADD COLUMN evil TEXT",
        trigger="CREATE TRIGGER evil AFTER INSERT ON nodes BEGIN DELETE FROM edges; END",
        index="CREATE INDEX evil ON nodes (labels)",
        begin="BEGIN",
        commit="COMMIT",
        vacuum="VACUUM",
    ),
    *several(
        RUNAWAY,
        recursion="WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
        cross_product="SELECT count(*) FROM edges a, edges b, edges c, edges d, edges e",
        big_rows="WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3000000) SELECT n, 'xxxxxxxx' FROM r",
    ),
    *several(
        TWO,
        delete_after_a_read="SELECT 1; DELETE FROM edges",
        drop_after_a_comment="SELECT 1; -- done\nDROP TABLE edges",
    ),
    *several(TWO, "write", write_after_a_write="UPDATE nodes SET properties = '{}' WHERE 0 = 1; DROP TABLE edges"),
    *several(
        TRICKS,
        comment_in_a_word="DEL/**/ETE FROM edges",
        comment_first="/* SELECT */ DELETE FROM edges",
        line_comment="-- SELECT\nDELETE FROM edges",
        quote_in_a_comment="SELECT 1 /* ' */; DELETE FROM edges -- '",
        full_width="ＤＥＬＥＴＥ FROM edges",
        no_break_space="DELETE\u00a0FROM\u00a0edges",
    ),
]  # fmt: skip
HOSTILE_SQLITE = [
    *_BOTH,
    *several(
        HOST_PLACES,
        attach="ATTACH DATABASE 'SECRET_FILE' AS evil",
        readfile="SELECT readfile('SECRET_FILE')",
        writefile="SELECT writefile('OUT_FILE', 'x')",
        vacuum_into="VACUUM INTO 'OUT_FILE'",
        load_extension="SELECT load_extension('SECRET_FILE')",
        pragma="PRAGMA writable_schema = 1",
        pragma_function="SELECT * FROM pragma_database_list",
        tokenizer="SELECT fts3_tokenizer('simple')",
        master="SELECT sql FROM sqlite_master",
    ),
    *several(
        RUNAWAY,
        big_blob="SELECT length(randomblob(1000000000)), hex(randomblob(900000000))",
        printf="SELECT printf('%.*c', 999999999, 'x')",
    ),
]  # fmt: skip
HOSTILE_POSTGRES = [
    *_BOTH,
    *several(
        HOST_PLACES,
        pg_read_file="SELECT pg_read_file('SECRET_FILE')",
        pg_ls_dir="SELECT pg_ls_dir('/')",
        lo_import="SELECT lo_import('SECRET_FILE')",
        copy_to="COPY nodes TO 'OUT_FILE'",
        copy_program="COPY nodes TO PROGRAM 'touch OUT_FILE'",
        dblink="SELECT * FROM dblink('HOST_URL', 'SELECT 1') AS t(x int)",
        settings="SELECT current_setting('data_directory')",
        passwords="SELECT rolname, rolpassword FROM pg_authid",
        query_to_xml="SELECT query_to_xml('DELETE FROM edges RETURNING 1', true, true, '')",
        lo_export="SELECT lo_export(1, 'OUT_FILE')",
    ),
    *several(
        HOST_PLACES, "write",
        copy_from="COPY nodes FROM 'SECRET_FILE'",
        insert_a_file="INSERT INTO nodes (id, labels, properties) SELECT pg_read_file('SECRET_FILE'), '[]', '{}'",
    ),
    *several(
        CALLS,
        do_block="DO $$ BEGIN DELETE FROM edges; END $$",
        call="CALL evil()",
        set_role="SET ROLE postgres",
        reset_role="RESET ROLE",
        set_config="SELECT set_config('transaction_read_only', 'off', true)",
        sleep="SELECT pg_sleep(30)",
        terminate="SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
        advisory_lock="SELECT pg_advisory_lock(1)",
        notify="SELECT pg_notify('x', 'y')",
        dollar_quotes="SELECT $x$ ' $x$; DELETE FROM edges --'",
    ),
]  # fmt: skip

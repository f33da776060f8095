-- About the database itself: versions of the schema and the views, and derived facts that are still to be computed.

CREATE SCHEMA meta;
CREATE TABLE meta.schema_version (
    version INTEGER NOT NULL,
    tracedb_version VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE meta.schema_version IS 'Schema version of this file; one row.';
COMMENT ON COLUMN meta.schema_version.version IS 'Schema version.';
COMMENT ON COLUMN meta.schema_version.tracedb_version IS 'Version of tracedb that created the file.';
COMMENT ON COLUMN meta.schema_version.applied_at IS 'When the schema was created, UTC.';
CREATE TABLE meta.owed (
    fact VARCHAR NOT NULL,
    capture_id INTEGER NOT NULL
);
COMMENT ON TABLE meta.owed IS 'Derived facts still to be computed, for example after a killed ingest; normally empty. The next tracedb ingest computes them.';
COMMENT ON COLUMN meta.owed.fact IS 'The derived fact: clock_alignment or graph_links.';
COMMENT ON COLUMN meta.owed.capture_id IS 'Capture that was loaded after the fact was last computed.';
CREATE TABLE meta.view_version (
    version VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE meta.view_version IS 'The installed views, with the digest of the file that created each.';
COMMENT ON COLUMN meta.view_version.version IS 'View version, such as v1.';
COMMENT ON COLUMN meta.view_version.name IS 'View name.';
COMMENT ON COLUMN meta.view_version.sha256 IS 'SHA-256 of the view''s SQL file.';

-- A time of a capture on the common clock of its run, from the columns of v1._common_clock; NULL if clocks cannot be
-- compared.
CREATE MACRO v1._common_time(recorded_ns, clock, zero_ns, offset_ns, at_ns, stretch) AS
CASE
    WHEN clock <> 'incomparable' THEN
        recorded_ns + zero_ns - offset_ns - round((recorded_ns + zero_ns - offset_ns - at_ns) * stretch)::BIGINT
END;

COMMENT ON MACRO v1._common_time IS 'Time on the common clock of a run, in ns.';

-- Chooses the captures whose setting only some sides have, so that equal settings are compared.
-- In:  temp tables side_setting (setting.sql), side_name.
-- Out: temp table side_left_out(side, capture_id, setting); more rows of side_warning.
-- A label counts if all sides share some of its values, but not all: one that tells the sides apart shares none. Nothing
-- is left out if sides share captures, as one of them is then a part of the other, or no setting as a whole.
CREATE OR REPLACE TEMP TABLE side_left_out AS
WITH pairs AS (
    SELECT key, value, count(DISTINCT side) = (SELECT count(*) FROM side_name) AS is_shared
    FROM side_setting
    WHERE key IS NOT NULL
    GROUP BY key, value
),

keys AS (
    SELECT key FROM pairs GROUP BY key HAVING bool_or(is_shared) AND NOT bool_and(is_shared)
),

settings AS (
    SELECT s.side, s.capture_id, string_agg(s.key || '=' || s.value, ' ' ORDER BY s.key) AS setting
    FROM side_setting AS s
    SEMI JOIN keys AS k ON k.key = s.key
    GROUP BY s.side, s.capture_id
),

shared AS (
    SELECT setting FROM settings GROUP BY setting HAVING count(DISTINCT side) = (SELECT count(*) FROM side_name)
)

SELECT s.side, s.capture_id, s.setting
FROM settings AS s
ANTI JOIN shared AS h ON h.setting = s.setting
WHERE (SELECT count(*) FROM shared) > 0
    AND (SELECT max(sides) FROM (SELECT count(DISTINCT side) AS sides FROM side_setting GROUP BY digest)) = 1;

INSERT INTO side_warning
SELECT
    o.side,
    format('{}: {} {} left out, whose settings not every side has ({})', any_value(n.name), count(*),
        CASE count(*) WHEN 1 THEN 'capture is' ELSE 'captures are' END,
        array_to_string(list_sort(list(DISTINCT o.setting))[:6], ', ')
        || CASE WHEN count(DISTINCT o.setting) > 6 THEN ', …' ELSE '' END)
FROM side_left_out AS o
INNER JOIN side_name AS n ON n.side = o.side
GROUP BY o.side;

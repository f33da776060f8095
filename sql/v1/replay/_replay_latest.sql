-- Which replay of a capture counts: its latest one.
-- Grain: capture with a replay. Earlier ones stay in the tables main.replay_run, main.replay and main.replay_pass.
CREATE VIEW v1._replay_latest AS
SELECT r.capture_id, max(r.replay_id) AS replay_id
FROM main.replay_run AS r
GROUP BY r.capture_id;

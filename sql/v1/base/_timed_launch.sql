-- Every runtime and driver API call whose time can be set against that of the GPU work it launched.
-- Grain: call. Left out are calls whose own times cannot be true (time_fault), and all calls of a capture in which some
-- device runs on a clock that lies apart from theirs (main.clock_fault): the time from a call to its kernel, and what
-- was pending at a call, is then not known.
CREATE VIEW v1._timed_launch AS
SELECT l.capture_id, l.launch_id, l.name, l.process_id, l.thread_id, l.start_ns, l.duration_ns
FROM main.launch AS l
WHERE l.time_fault IS NULL AND l.capture_id NOT IN (SELECT f.capture_id FROM main.clock_fault AS f);

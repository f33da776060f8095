-- Every runtime and driver API call whose time can be compared with that of the GPU work that it launched.
-- Grain: call. Excludes calls with impossible times (time_fault), and all calls of a capture with a device whose clock
-- is not aligned with theirs (main.clock_fault): the time from a call to its kernel, and the work pending at a call,
-- are unknown then.
CREATE VIEW v1._timed_launch AS
SELECT l.capture_id, l.launch_id, l.name, l.process_id, l.thread_id, l.start_ns, l.duration_ns
FROM main.launch AS l
WHERE l.time_fault IS NULL AND l.capture_id NOT IN (SELECT f.capture_id FROM main.clock_fault AS f);

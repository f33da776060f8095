-- When does PyTorch's optimizer step or clear gradients? Grain: capture × process × thread × start of
-- Optimizer.step or Optimizer.zero_grad. Of several that start together the longest counts.
CREATE VIEW v1._optimizer_range AS
SELECT a.capture_id, a.process_id, a.thread_id, a.start_ns, max(a.start_ns + a.duration_ns) AS end_ns
FROM main.annotation AS a
WHERE regexp_matches(a.name, '^Optimizer\.(step|zero_grad)#') AND a.style <> 'gpu_projection'
    AND a.duration_ns IS NOT NULL AND a.time_fault IS NULL
GROUP BY a.capture_id, a.process_id, a.thread_id, a.start_ns;

-- What a replay says of its capture as a whole, for programs.
-- In:  tables main.replay, main.replay_run, views v1.replay_passes; variable replay_id.
-- Out: one row of JSON texts: run, passes, tiers, top (the 20 operators with most recorded time).
SELECT
    (
        SELECT to_json(struct_pack(
            replay_id := u.replay_id, capture_id := u.capture_id, mode := u.mode, device := u.device,
            torch_version := u.torch_version, cache := u.cache, clock := u.clock, passes := u.passes,
            sequence_eager_ns := u.sequence_eager_ns, sequence_graph_ns := u.sequence_graph_ns,
            sequence_share_percent := u.sequence_share_percent, sequence_detail := u.sequence_detail,
            measured_ns := u.measured_ns, measured_joules := u.measured_joules, idle_watts := u.idle_watts,
            energy_interval_ns := u.energy_interval_ns
        ))
        FROM main.replay_run AS u WHERE u.replay_id = getvariable('replay_id')
    ) AS run,
    (
        SELECT to_json(list(struct_pack(
            pass := p.pass, name := p.name, kernel_sum_ns := p.kernel_sum_ns, union_ns := p.union_ns,
            span_ns := p.span_ns, idle_ns := p.idle_ns, launch_gap_ns := p.launch_gap_ns, wall_ns := p.wall_ns,
            wall_source := p.wall_source, rule := p.rule, predicted_ns := p.predicted_ns,
            error_percent := p.error_percent, recorded_error_percent := p.recorded_error_percent,
            predicted_joules := p.predicted_joules,
            joules_error_percent := p.joules_error_percent
        ) ORDER BY p.pass, p.rule_order))
        FROM v1.replay_passes AS p WHERE p.replay_id = getvariable('replay_id')
    ) AS passes,
    (
        SELECT to_json(list(t ORDER BY t.tier))
        FROM (
            SELECT
                s.tier,
                count(*) AS signatures,
                sum(s.calls)::BIGINT AS calls,
                sum(s.share_percent) AS share_percent,
                sum(s.share_percent) FILTER (s.status = 'replayed') AS replayed_percent,
                sum(s.recorded_total_ns / u.passes)::DOUBLE AS recorded_ns,
                sum(s.calls_per_pass * s.replayed_median_ns) AS replayed_ns
            FROM main.replay AS s
            INNER JOIN main.replay_run AS u ON u.replay_id = s.replay_id
            WHERE s.replay_id = getvariable('replay_id')
            GROUP BY s.tier
        ) AS t
    ) AS tiers,
    (
        SELECT to_json(list(struct_pack(
            name := s.name, input_dims := s.input_dims, calls_per_pass := s.calls_per_pass,
            recorded_median_ns := s.recorded_median_ns, replayed_median_ns := s.replayed_median_ns, ratio := s.ratio,
            share_percent := s.share_percent, status := s.status
        ) ORDER BY s.signature_id))
        FROM main.replay AS s WHERE s.replay_id = getvariable('replay_id') AND s.signature_id <= 20
    ) AS top;

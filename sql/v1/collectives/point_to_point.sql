-- How long did each message between two ranks take, and how long did either rank wait for the other?
-- Grain: matched pair of a send and a receive. v1._message_pair explains how calls are matched, v1._message_call how
-- calls in a batch (batch_isend_irecv) find their kernel. A kernel with several messages has one duration; each of its
-- pairs takes the shorter of the two kernels as transfer.
CREATE VIEW v1.point_to_point AS
SELECT
    pair.source, pair.labels, pair.cycle, pair.step, pair.source_rank, pair.destination_rank, pair.ordinal,
    pair.group_name, pair.group_ranks, pair.message_bytes, pair.dtype, pair.transfer_ns,
    pair.send_duration_ns - pair.transfer_ns AS send_wait_ns,
    pair.recv_duration_ns - pair.transfer_ns AS recv_wait_ns,
    pair.message_bytes / nullif(pair.transfer_ns, 0)::DOUBLE AS gbps,
    CASE WHEN pair.send_is_batched OR pair.recv_is_batched THEN 'batch' ELSE 'call' END AS matched_by,
    pair.match_rule,
    pair.send_start_ns, pair.send_duration_ns, pair.recv_start_ns, pair.recv_duration_ns,
    pair.clock_residual_ns,
    pair.send_capture_id, pair.send_event_id, pair.send_call_id, pair.send_device_id, pair.send_stream_id,
    pair.recv_capture_id, pair.recv_event_id, pair.recv_call_id, pair.recv_device_id, pair.recv_stream_id
FROM v1._message_pair AS pair
WHERE true /* filter pair */;

COMMENT ON VIEW v1.point_to_point IS 'Messages between ranks: each send matched with its receive, also in batches. Grain: matched pair of a send and a receive.';
COMMENT ON COLUMN v1.point_to_point.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.point_to_point.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.point_to_point.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.point_to_point.step IS 'Step number of the send, else of the receive; NULL outside steps. [-]';
COMMENT ON COLUMN v1.point_to_point.source_rank IS 'Rank that sends. [-]';
COMMENT ON COLUMN v1.point_to_point.destination_rank IS 'Rank that receives. [-]';
COMMENT ON COLUMN v1.point_to_point.ordinal IS 'Number of the message among those from the one rank to the other in the group, from 1 in the order of sends. [-]';
COMMENT ON COLUMN v1.point_to_point.group_name IS 'Process group; NULL if not recorded.';
COMMENT ON COLUMN v1.point_to_point.group_ranks IS 'Ranks of the process group, as JSON text as recorded.';
COMMENT ON COLUMN v1.point_to_point.message_bytes IS 'Size of the message, as the sender recorded it, else the receiver; NULL if not recorded. [bytes]';
COMMENT ON COLUMN v1.point_to_point.dtype IS 'Element type as recorded.';
COMMENT ON COLUMN v1.point_to_point.transfer_ns IS 'Transfer time: the shorter of the two kernels. [ns]';
COMMENT ON COLUMN v1.point_to_point.send_wait_ns IS 'Rest of the sending kernel: its rank waits for the receiver. [ns]';
COMMENT ON COLUMN v1.point_to_point.recv_wait_ns IS 'Rest of the receiving kernel: its rank waits for the sender. [ns]';
COMMENT ON COLUMN v1.point_to_point.gbps IS 'Message size / transfer time (1e9 bytes per second); a lower bound if a kernel carries several messages. [GB/s]';
COMMENT ON COLUMN v1.point_to_point.matched_by IS 'How the calls found their kernels: call (each launched its own), batch (at least one of them shares a kernel with the other calls of its batch).';
COMMENT ON COLUMN v1.point_to_point.match_rule IS 'How sends and receives were counted: order in step, order, order from the end (the recordings begin at different calls).';
COMMENT ON COLUMN v1.point_to_point.send_start_ns IS 'Start of the sending kernel on the common clock (Unix time if known); NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.point_to_point.send_duration_ns IS 'Duration of the sending kernel. [ns]';
COMMENT ON COLUMN v1.point_to_point.recv_start_ns IS 'Start of the receiving kernel on the common clock; NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.point_to_point.recv_duration_ns IS 'Duration of the receiving kernel. [ns]';
COMMENT ON COLUMN v1.point_to_point.clock_residual_ns IS 'Median clock residual after alignment, maximum over the two ranks; NULL if clocks are not aligned. [ns]';
COMMENT ON COLUMN v1.point_to_point.send_capture_id IS 'Capture of the sender. [-]';
COMMENT ON COLUMN v1.point_to_point.send_event_id IS 'Sending kernel (kernel_event.event_id in send_capture_id). [-]';
COMMENT ON COLUMN v1.point_to_point.send_call_id IS 'Call of the send (collective_call.call_id, or the operator c10d::send). [-]';
COMMENT ON COLUMN v1.point_to_point.send_device_id IS 'Device of the sending kernel. [-]';
COMMENT ON COLUMN v1.point_to_point.send_stream_id IS 'Stream of the sending kernel. [-]';
COMMENT ON COLUMN v1.point_to_point.recv_capture_id IS 'Capture of the receiver. [-]';
COMMENT ON COLUMN v1.point_to_point.recv_event_id IS 'Receiving kernel (kernel_event.event_id in recv_capture_id). [-]';
COMMENT ON COLUMN v1.point_to_point.recv_call_id IS 'Call of the receive. [-]';
COMMENT ON COLUMN v1.point_to_point.recv_device_id IS 'Device of the receiving kernel. [-]';
COMMENT ON COLUMN v1.point_to_point.recv_stream_id IS 'Stream of the receiving kernel. [-]';

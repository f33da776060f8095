-- Which part of attention is a range named after: scores, softmax or value? NULL if none.
CREATE MACRO v1._attention_part(name) AS CASE
    WHEN regexp_matches(name, '(?i)softmax') THEN 'softmax'
    WHEN regexp_matches(name, '(?i)(attention|attn)[_ ]?scores|^q?k[_ ]?t?[_ ]?matmul') THEN 'scores'
    WHEN regexp_matches(name, '(?i)final[_ ]?matmul|(attention|attn)[_ ]?(value|output)|^[ap]v[_ ]?matmul') THEN 'value'
END;

COMMENT ON MACRO v1._attention_part IS 'Part of attention that a range is named after: scores, softmax or value; NULL if none.';

-- What is PyTorch's element type in lower case, without c10:: and the second word of "long int"?
CREATE MACRO v1._plain_type(torch_type) AS
regexp_replace(replace(lower(torch_type), 'c10::', ''), '^(?:unsigned |signed )?(long|char|short|int)(?: int)?$', '\1');

COMMENT ON MACRO v1._plain_type IS 'PyTorch''s element type as v1._element_bytes wants it: lower case, without c10::.';

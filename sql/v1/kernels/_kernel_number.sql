-- Which number has each kernel name? Grain: distinct kernel name. Numbers follow the order of names, so that every use of
-- this view gives the same ones: views over millions of kernels sort and group by them, and read the texts afterwards.
CREATE VIEW v1._kernel_number AS
SELECT e.name, row_number() OVER (ORDER BY e.name) AS name_no
FROM main.kernel_event AS e
WHERE e.kind = 'kernel'
GROUP BY e.name;

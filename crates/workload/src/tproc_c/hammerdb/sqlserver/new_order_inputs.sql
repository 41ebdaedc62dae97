-- The server draws what the caller does not give. What the caller says of the time is not used.
SET NOCOUNT ON;
DECLARE @home int = @no_w_id, @district_number int = @no_d_id, @customer_number int = @no_c_id,
        @line_count int = @no_o_ol_cnt, @local_only int = 1, @rounds int, @all_lines nvarchar(4000);
DECLARE @line int = 1, @drawn_item int, @drawn_supply int, @drawn nvarchar(4000) = '[',
        @unused int = CASE WHEN RAND() < 0.01 THEN 1 ELSE 0 END;
WHILE @line <= @line_count
BEGIN
    SET @drawn_supply = @home;
    IF @no_max_w_id > 1 AND RAND() < 0.01
    BEGIN
        SET @drawn_supply = 1 + CAST(FLOOR(RAND() * (@no_max_w_id - 1)) AS int);
        SET @drawn_supply = @drawn_supply + CASE WHEN @drawn_supply >= @home THEN 1 ELSE 0 END;
        SET @local_only = 0;
    END;
    SET @drawn_item = 1 + ((CAST(FLOOR(RAND() * 8192) AS int) | CAST(1 + FLOOR(RAND() * 100000) AS int)) + 4321) % 100000;
    IF @unused = 1 AND @line = @line_count
        SET @drawn_item = 100001;
    SET @drawn = CONCAT(@drawn, CASE WHEN @line > 1 THEN ',' ELSE '' END, '[', @line, ',', @drawn_item, ',',
                        @drawn_supply, ',', 1 + CAST(FLOOR(RAND() * 10) AS int), ']');
    SET @line = @line + 1;
END;
SET @drawn = CONCAT(@drawn, ']');
SELECT @all_lines = CONCAT('[', STRING_AGG(CONCAT('[', number, ',', item, ',', supply, ',', quantity, ',', round, ']'), ',')
           WITHIN GROUP (ORDER BY round, CASE WHEN item = 100001 THEN 1 ELSE 0 END, supply, item), ']'),
       @rounds = MAX(round)
  FROM (SELECT number, item, supply, quantity,
               ROW_NUMBER() OVER (PARTITION BY item, supply ORDER BY number) AS round
          FROM OPENJSON(@drawn) WITH (
                   number int '$[0]', item int '$[1]', supply int '$[2]', quantity int '$[3]') AS d) AS l;

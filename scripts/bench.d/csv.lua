-- 150,000 rows of 10 columns, as csv_peer.py makes them: prints the milliseconds of time and of CPU
-- time that reading them takes.
--
--   csv.lua lists|records
local csv = require "flow.csv"

local row = '%d,name %d,"a, b",%d.5,x,"say ""hi""",2024-02-29,,true,end of the row\n'
local lines = { "id,name,pair,amount,code,text,day,nothing,flag,last\n" }
for i = 1, 150000 do lines[i + 1] = row:format(i, i, i) end
local text = table.concat(lines)
collectgarbage()
local stop, count = require "clock"(), 0
for _ in csv.rows(text, { header = arg[1] == "records" }) do count = count + 1 end
assert(count == (arg[1] == "records" and 150000 or 150001))
print(stop(1e3))

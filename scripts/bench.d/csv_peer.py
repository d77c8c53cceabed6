# Reads and writes CSV by Python's csv: csv_peer.py lists|records
import csv
import io
import sys
import time

row = '{0},name {0},"a, b",{0}.5,x,"say ""hi""",2024-02-29,,true,end of the row\n'
text = "id,name,pair,amount,code,text,day,nothing,flag,last\n" + "".join(
    row.format(i) for i in range(1, 150001))
begin, used = time.perf_counter(), time.process_time()
source = io.StringIO(text)
reader = csv.DictReader(source) if sys.argv[1] == "records" else csv.reader(source)
count = sum(1 for _ in reader)
used = time.process_time() - used
taken = time.perf_counter() - begin
assert count == (150000 if sys.argv[1] == "records" else 150001)
print(taken * 1e3, used * 1e3)

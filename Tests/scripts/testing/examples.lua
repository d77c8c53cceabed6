-- The tests of the examples pass, as `--test` executes them.
local host, check = require "host", require "check"
local result = host.run(host.binary, { "--test", "examples" })
check.equal(result.status, 0, result.stdout .. result.stderr)
check.contains(result.stdout, "\nok 1 - examples/newsletter_test.lua: the_report_counts\n", " passed, 0 failed, in 1 file")

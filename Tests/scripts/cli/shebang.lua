-- A first line that begins with # is skipped, and lines keep their numbers.
local host = require "host"
host.same_script "#!/usr/bin/env flowlua\nprint(debug.getinfo(1, 'l').currentline)"
host.same_script "#!/usr/bin/env flowlua\nerror 'second line'"
host.same_script "#\nprint 'short'"
host.same_script "# no newline at all"
host.same_script "\xEF\xBB\xBFprint 'behind a byte order mark'"
host.same_script "\xEF\xBB\xBF#!/usr/bin/env flowlua\nprint 'both'"

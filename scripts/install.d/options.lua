-- Writes what others say of the options of flowlua, from its `--help`: completions for bash and
-- zsh, and the options of the manual page. `flowlua options.lua bash|zsh|man` prints one of them.
local program = arg[-1]:gsub("'", "'\\''")
local help = assert(io.popen(("'%s' --help"):format(program))):read "a"

-- Options in the order of the help: their names, what follows these, the text; and the titles
-- before the sections.
local options, last = {}, nil
for line in help:gmatch "[^\n]*" do
  local form, text = line:match "^  (%-%-%S.-)  %s*(%S.*)$"
  if form then
    local name, rest = form:match "^(%-%-[%w-]+)(.*)$"
    last = { name = name, rest = rest, text = text }
    options[#options + 1] = last
  elseif line:find "^%u.*:$" then
    last = nil
    options[#options + 1] = { title = line:match "^(.*):$" }
  elseif last and line:find "^%s+%S" then
    last.text = last.text .. " " .. line:match "^%s+(.*)$"
  end
end

-- The kind of a value, by how the help writes it.
local kinds = {
  { "PATH,", "paths" }, { "DIR,", "folders" }, { "HOST,", "hosts" }, { "VARIABLE,", "variables" },
  { "FILE", "files" }, { "DIR", "folders" }, { "FOLDER", "folders" },
}
local function kind(option)
  for _, entry in ipairs(kinds) do
    if option.rest:find(entry[1], 1, true) then return entry[2] end
  end
  local words = option.rest:match "^%A*(%l[%l|]*)%]?$"
  return words and "words", words and words:gsub("|", " ")
end
local function may_take_next(option) return option.rest:find "^ %[" or option.name == "--forget" end

-- Each option once, by name.
local named, known = {}, {}
for _, option in ipairs(options) do
  if option.name and not known[option.name] then
    known[option.name] = true
    named[#named + 1] = option
  end
end
table.sort(named, function(a, b) return a.name < b.name end)
local function names(condition)
  local list = {}
  for _, option in ipairs(named) do
    if condition(option) then list[#list + 1] = option.name end
  end
  return list
end

local writers = {}

function writers.bash()
  local generators = {
    words = "-W '%s'", files = "-f", folders = "-d", paths = '-P "$list" -f',
    hosts = '-P "$list" -A hostname', variables = '-P "$list" -e',
  }
  local needed = names(function(o) return o.rest:find "^[ =]" and not may_take_next(o) end)
  needed = table.concat(needed, " | ") .. " | -e | -l"
  local optional = table.concat(names(may_take_next), " | ")
  local cases = {}
  for _, option in ipairs(named) do
    local of, words = kind(option)
    if of then
      local part = generators[of]:find "list" and '${word#"$list"}' or "$word"
      cases[#cases + 1] = ('    %s) mapfile -t COMPREPLY < <(compgen %s -- "%s") ;;'):format(
        option.name, generators[of]:format(words), part)
    end
  end
  local all = names(function() return true end)
  all = table.concat(all, " ") .. " --sandbox=strict --summary=json"
  local text = [==[
# Completion of flowlua's options for bash.
# shellcheck shell=bash

_flowlua() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} option='' list='' at
  COMPREPLY=()

  # `--summary=json` may come as three words, as bash parts words at `=`.
  if [[ $word == = ]]; then
    option=$before word=''
  elif [[ $before == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $word == --*=* ]]; then
    option=${word%%=*} word=${word#*=}
  else
    case $before in
      @NEEDED@) option=$before ;;
      @OPTIONAL@) if [[ $word != -* ]]; then option=$before; fi ;;
    esac
  fi

  # Of words with commas between them the last one is completed.
  if [[ $word == *,* ]]; then list=${word%,*},; fi

  case $option in
@CASES@
    -?*) ;;
    *)
      # After the script all words are its own.
      for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
          @NEEDED@) at=$((at + 1)) ;;
          --otlp) [[ ${COMP_WORDS[at+1]} == @(*.json|*.jsonl|*.ndjson|*://*) ]] && at=$((at + 1)) ;;
          @OPTIONAL@) [[ ${COMP_WORDS[at + 1]} != -* ]] && at=$((at + 1)) ;;
          --) break ;;
          -?* | =) ;;
          *) [[ ${COMP_WORDS[at - 1]} == = ]] || break ;;
        esac
      done
      if ((at >= COMP_CWORD)) && [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '@ALL@ -e -i -l -v -E -W' -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
  esac
}

complete -o filenames -F _flowlua flowlua
]==]
  local parts = {
    NEEDED = needed, OPTIONAL = optional, CASES = table.concat(cases, "\n"), ALL = all,
  }
  return (text:gsub("@(%u+)@", parts))
end

function writers.zsh()
  local actions = {
    words = "(%s)", files = "_files", folders = "_files -/", paths = "_sequence _files",
    hosts = "_sequence _hosts", variables = '_sequence _parameters -g "*export*"',
  }
  local lines = {
    "#compdef flowlua", "# Completion of flowlua's options for zsh.", "", "_arguments -S -s \\",
  }
  for _, option in ipairs(named) do
    -- Up to where the help has more to say.
    local about = option.text:match "^with %-%-[^:]*: ([^;:(]*)" or option.text:match "^[^;:(]*"
    about = about:gsub("%s+$", ""):gsub("[%[%]]", "\\%0"):gsub("'", "'\\''")
    if option.rest == "" then
      lines[#lines + 1] = ("  '%s[%s]' \\"):format(option.name, about)
    else
      local of, words = kind(option)
      local is_optional = option.rest:find "^ ?%[" or may_take_next(option)
      lines[#lines + 1] = ("  '*%s=%s[%s]:%svalue:%s' \\"):format(
        option.name, option.rest:find "^%[" and "-" or "", about, is_optional and ":" or "",
        of and actions[of]:format(words) or "")
    end
  end
  return table.concat(lines, "\n") .. [[

  '*-e[execute a statement]:statement:' \
  '-i[open a session after the script]' \
  '*-l[require a module]:module:' \
  '-v[show the versions]' \
  '-E[ignore the environment]' \
  '-W[turn warnings on]' \
  '1:script:_files -g "*.lua(-.)"' \
  '*::argument:_files'
]]
end

function writers.man()
  local lines = {}
  local function put(line) lines[#lines + 1] = line end
  for i, option in ipairs(options) do
    local is_first = i > 1 and options[i - 1].title
    if option.title then
      if lines[1] then put ".El" end
      if not option.title:find "lua5.4" then put(".Ss " .. option.title) end
    elseif is_first then
      put ".Bl -tag -width Ds"
    end
    if option.name then
      local value = option.rest:gsub("^ ", "Ar "):gsub("^([=[])", "Ns Ar %1")
      put((".It Fl %s %s"):format(option.name:sub(2), value):gsub("%s+$", ""))
      local text = option.text:gsub("\\", "\\e"):gsub("^%l", string.upper)
      -- A line for each sentence.
      put((text .. "."):gsub("%. (%u)", ".\n%1"))
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

io.write(writers[arg[1]]())

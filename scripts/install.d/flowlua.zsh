#compdef flowlua
# Completion of flowlua's options for zsh.

_arguments -S -s \
  '*--allow-env=[with --sandbox, keep these variables of the environment]:variable:_sequence _parameters -g "*export*"' \
  '--allow-net[with --sandbox, allow internet sockets]' \
  '*--allow-read=[with --sandbox, allow reading of files and folders]:path:_sequence _files' \
  '--allow-run[with --sandbox, allow starting of programs]' \
  '*--allow-write=[with --sandbox, allow writing of files and folders]:path:_sequence _files' \
  '--annotations=[write the annotations of flow for LuaLS]:folder:_files -/' \
  '--check[check the flows instead of executing them]' \
  '--color=[whether messages have colours]:word:(auto always never)' \
  '--cpu-limit=[limit the processor time]:seconds:' \
  '--events=[append each event to a file]:file:_files' \
  '--follow[print each line of the summaries as it happens]' \
  '--forget=[remove a kept run]::run:' \
  '--from=[continue a kept run, and execute this op and all after it]:op:' \
  '--grace=[give cleanups this many seconds after a stop]:seconds:' \
  '--graph=[write the flows as a graph]:file:_files -g "*.(dot|mmd|svg)"' \
  '--help[show the options]' \
  '*--hosts=[start machines on these hosts for the script]:host:_sequence _hosts' \
  '--hosts-address=[the address of this machine for machines that ssh does not connect]:address:' \
  '--hosts-command=[the command that calls flowlua on the hosts]:command:' \
  '--hosts-launcher=[the command that executes another one on a host]:command:' \
  '--init=[write settings for editors, a first flow and its test]::folder:_files -/' \
  '--insecure[let servers of other machines be reached without TLS]' \
  '--join=[execute ops of scripts elsewhere]::URL of the server:' \
  '--keep[keep what the ops finish]' \
  '--memory-limit=[limit the memory of the script and its workers]:size:' \
  '--name=[with --join, the name of this machine]:name:' \
  '--no-cache[execute ops although a kept run has their result]' \
  '--no-progress[disable the progress]' \
  '--older-than=[remove kept runs of more than this age]:age:' \
  '*--only=[execute only this op of a kept run]:op:' \
  '--open-files=[limit the number of open files]:number:' \
  '--otlp=[write the runs as spans of OpenTelemetry]::file or URL:_files -g "*.json"' \
  '--progress=[how the progress is shown]:word:(auto plain never)' \
  '--remote=[execute ops on the machines that have joined a server]:URL of the server:' \
  '--remote-check[list the machines that have joined]' \
  '*--remote-shared=[a folder that is the same on all machines]:folder:_files -/' \
  '--remote-timeout=[how long ops wait while no machine can execute them]:seconds:' \
  '--report=[write a report of the runs in Markdown]:file:_files -g "*.md"' \
  '--resume=-[continue a kept run]::run:' \
  '--runs[list the kept runs]' \
  '--sandbox=-[let the kernel restrict the script]::word:(strict)' \
  '*--settle=[say what became of an op that is executed only once]:op and word:' \
  '--show=[show a kept run]:run:' \
  '--store=[keep runs in this folder]:folder:_files -/' \
  '--store-limit=[how large the store of runs may become]:size:' \
  '--summary=-[print the summary of each run]::form:(text json)' \
  '--tags=[with --join, what this machine has]:words:' \
  '--time=[the form of times in summaries]:word:(clock iso)' \
  '--time-limit=[cancel everything after this many seconds]:seconds:' \
  '--timeline=[write a page with the timeline of the runs]:file:_files -g "*.html"' \
  '--trace=[write the runs as Chrome trace events]:file:_files -g "*.json"' \
  '--trust-code[ops count as unchanged although their code has changed]' \
  '--verify[check the store of kept runs]' \
  '--version[show the versions]' \
  '--virtual-clock[use a virtual clock]' \
  '--why[print which ops would be executed, and why]' \
  '--within=[leave an older run, and begin a new one]:age:' \
  '--workers=[run at most this many workers]:number:' \
  '*-e[execute a statement]:statement:' \
  '-i[ask for lines after the script]' \
  '*-l[require a module]:module:' \
  '-v[show the versions]' \
  '-E[ignore the environment]' \
  '-W[turn warnings on]' \
  '1:script:_files -g "*.lua(-.)"' \
  '*::argument:_files'

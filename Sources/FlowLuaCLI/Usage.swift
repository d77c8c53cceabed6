internal import FlowEngine
internal import FlowScripting

/// The usage texts of the program.
enum Usage {
  static let version: ByteString = "flowlua \(FlowLuaVersion.number)"

  /// The text for wrong use of an option of the interpreter: that of lua5.4.
  static func interpreter(_ program: ByteString) -> ByteString {
    """
    usage: \(program) [options] [script [args]]
    Available options are:
      -e stat   execute string 'stat'
      -i        enter interactive mode after executing 'script'
      -l mod    require library 'mod' into global 'mod'
      -l g=mod  require library 'mod' into global 'g'
      -v        show version information
      -E        ignore environment variables
      -W        turn warnings on
      --        stop handling options
      -         stop handling options and execute stdin

    """
  }

  /// The text of `--help`.
  static func help(_ program: ByteString) -> ByteString {
    """
    flowlua runs Lua 5.4 scripts, as lua5.4 does, and provides the module 'flow': named
    operations, flows, runs with a log, groups and tasks.

    usage: \(program) [options] [script [args]]

    Without a script it reads standard input; on a terminal it opens a session.

    Options of flowlua:
      --summary[=text|json]  print the summary of each run to stderr when the run ends
      --summary=FORM:FILE    write the summaries of all runs to a file instead, in this form
      --follow               print each line of the summaries to stderr as it happens
      --time WORD            the times in summaries: clock (4:17:18 PM), or iso, with the date
      --events FILE          append each event of each run to a file as a line of JSON, as it
                             happens; - for stdout
      --graph FILE           write the flows that the script starts as a graph, to a file that ends
                             in .dot or .mmd (Mermaid), or in .svg (needs Graphviz)
      --report FILE          write a report of all runs in Markdown: numbers, problems, what each run
                             waited for, and its ops; '-' is stdout
      --timeline FILE        write a page (HTML) with the timeline of all runs, and update it while they
                             execute; '-' is stdout
      --trace FILE           write all runs as Chrome trace events, which Perfetto shows; '-' is stdout
      --otlp FILE|URL        write all runs as spans of OpenTelemetry (OTLP/JSON), or send them to a
                             collector; without a value to $OTEL_EXPORTER_OTLP_ENDPOINT. A file whose
                             name ends neither in .json, .jsonl nor .ndjson needs --otlp=FILE
      --keep                 keep what the ops of the script finish, in .flowlua beside the script
      --keep=nats[:NAME]     keep it on the server of --remote as well, so that --resume continues on
                             any machine, for the script of this NAME (default: that of its file)
      --resume[=RUN]         continue a kept run: by default the latest of the script that hasn't
                             finished, else a new one; ops that had finished aren't executed again
      --within AGE           with --resume: leave a run that changed last before that, such as 12h,
                             and begin a new one
      --store DIR            keep runs in this folder instead
      --trust-code           with --resume: ops count as unchanged although their code has changed
      --no-cache             execute ops with a cache although a kept run has their result
      --settle OP=WORD       with --resume: what became of an op that is executed only once: done,
                             again (execute it) or fail
      --why                  execute no op, but print which ones --resume would execute, and why
      --only OP              execute only these ops of the latest kept run, with the data they had:
                             'UploadOp #40', a path such as 'ship/UploadOp #40', or all of UploadOp
      --from OP              continue the latest kept run, and execute this op and all after it
      --store-limit SIZE     how large the store may become, such as 500M (default 2G): when a kept
                             script ends, the oldest other runs are removed
      --runs                 list the kept runs, the newest last; this option and the next four
                             execute no script, but if one is named it says where the store is
      --show RUN             show what the ops of a kept run have done
      --forget RUN           remove a kept run
      --forget --older-than AGE  remove the kept runs that changed last before that: 12h, 30d, 4w
      --verify               check that the store has what was written; status 1 if it hasn't
      --check                run the script up to where it needs an outcome, but check its flows
                             and print their plans instead of running them; status 1 if a check
                             finds errors
      --virtual-clock        use a virtual clock, on which sleeping takes no time
      --grace S              give the cleanups of a stopped op S seconds (default 30, inf: no limit)
      --workers N            run at most N workers
      --color WORD           colours: auto (on a terminal, unless NO_COLOR is set), always or never
      --progress WORD        progress: auto (a tree on a terminal), plain (a line for each failure and
                             one every ten seconds), or never
      --no-progress          the same as --progress=never
      --annotations DIR      write the annotations of 'flow' for LuaLS into a folder
      --init [FOLDER]        write settings for editors, a .gitignore, a first flow and its test into a
                             folder, by default the present one; files that exist are kept
      --version              show the version
      --help                 show this help

    Other machines:
      --remote URL           execute ops with thread = "remote" on the machines that have joined this
                             server of NATS: nats://HOST, tls://TOKEN@HOST, or several URLs of a
                             cluster with commas
      --remote-timeout S     how long such ops wait while no machine can execute them (default 60)
      --remote-shared PATH   a folder that is the same on all machines: files in it aren't sent;
                             several with commas
      --remote-check         list the machines that have joined; status 1 if none can execute ops
                             of this version; no script is executed
      --hosts HOST,...       start machines on these hosts by ssh, and a server here, for as long as the
                             script runs; N/HOST has N workers, @FILE has a host on each line
      --hosts-launcher CMD   start them by this command instead of ssh, such as 'docker exec -i'; {} is
                             the place of the host
      --hosts-command CMD    how flowlua is called on the hosts (default: flowlua)
      --hosts-address ADDR   the address of this machine for machines that ssh doesn't connect
      --join [URL]           execute the ops of scripts elsewhere until SIGTERM or Ctrl-C, with as many
                             workers as there are cores, or --workers N; no script is executed;
                             without a URL, that of FLOWLUA_REMOTE; - reads it from standard input,
                             and ends with that
      --name NAME            with --join: the name of this machine (default: its host name)
      --tags TAG,...         with --join: what this machine has, at most 4 words: ops can demand them
      --insecure             let servers of other machines be reached without TLS

    Limits and permissions of the script:
      --memory-limit SIZE    limit the memory of the script and its workers, such as 512M: more is the
                             error 'not enough memory'
      --time-limit S         cancel everything after S seconds; cleanups have their grace
      --cpu-limit S          the same after S seconds of processor time, a whole number; each program
                             that the script starts has the same limit
      --open-files N         have at most N files and connections open, 20 or more; each program has
                             the same limit
      --sandbox[=strict]     let the kernel restrict the script, its C libraries and its programs: it
                             reads its folder and libraries, and writes a temporary folder; needs
                             Linux 5.19, or 6.12 if it is strict
      --allow-read=PATH,...  in the sandbox: reading of files, and of folders with all in them
      --allow-write=PATH,... reading, writing and removing of files there
      --allow-net            internet sockets (TCP and UDP), not those between processes
      --allow-run            starting of programs, to which all other restrictions apply
      --allow-env=NAME,...   these variables of the environment

    Options of lua5.4:
      -e STAT                execute a statement
      -l MOD                 require a module into the global of its name
      -l NAME=MOD            require a module into the global NAME
      -i                     open a session after the script
      -v                     show the versions
      -E                     ignore the environment: LUA_INIT, LUA_PATH, LUA_CPATH
      -W                     turn warnings on
      --                     end of the options
      -                      end of the options; run standard input

    The exit status is 0 for success; 1 for an error of the script, an unobserved failure, or wrong
    use of an option of lua5.4; 2 for wrong use of an option of flowlua, or a sandbox that the kernel
    can't provide; 75 after SIGTERM with a run that --resume continues; 124 after --time-limit or
    --cpu-limit; 129 after SIGHUP, 130 after a second Ctrl-C, 143 after SIGTERM.

    The manual page is flowlua(1). The Debian package has articles and examples in
    /usr/share/doc/flowlua; begin with articles/Cookbook.md.

    """
  }
}

# Completion of flowlua's options for bash.
# shellcheck shell=bash

_flowlua() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} option='' at
  COMPREPLY=()

  # `--summary=json` may come as three words, as bash parts words at `=`.
  if [[ $word == = ]]; then
    option=$before word=''
  elif [[ $before == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $word == --*=* ]]; then
    option=${word%%=*} word=${word#*=}
  elif [[ $before == --graph || $before == --color || $before == --events || $before == --workers ||
    $before == --annotations || $before == --grace || $before == --progress || $before == --report ||
    $before == --older-than || $before == --settle || $before == --show || $before == --forget || $before == --init ||
    $before == --from || $before == --only || $before == --allow-env || $before == --allow-read ||
    $before == --allow-write || $before == --cpu-limit || $before == --memory-limit || $before == --open-files ||
    $before == --hosts || $before == --hosts-address || $before == --hosts-command || $before == --hosts-launcher ||
    $before == --time || $before == --time-limit || $before == --join || $before == --name || $before == --remote ||
    $before == --remote-shared || $before == --remote-timeout || $before == --tags || $before == --store || $before == --store-limit || $before == --timeline || $before == --trace || $before == -e || $before == -l ]]; then
    option=$before
  fi

  # Paths and names of variables with commas between them: the last one is completed.
  local list=''
  if [[ $word == *,* ]]; then list=${word%,*},; fi

  case $option in
    --summary) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$word") ;;
    --progress) mapfile -t COMPREPLY < <(compgen -W 'auto plain never' -- "$word") ;;
    --time) mapfile -t COMPREPLY < <(compgen -W 'clock iso' -- "$word") ;;
    --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$word") ;;
    --sandbox) mapfile -t COMPREPLY < <(compgen -W 'strict' -- "$word") ;;
    --allow-env) mapfile -t COMPREPLY < <(compgen -P "$list" -e -- "${word#"$list"}") ;;
    --hosts) mapfile -t COMPREPLY < <(compgen -P "$list" -A hostname -- "${word#"$list"}") ;;
    --allow-read | --allow-write) mapfile -t COMPREPLY < <(compgen -P "$list" -f -- "${word#"$list"}") ;;
    --workers) mapfile -t COMPREPLY < <(compgen -W "$(seq "$(nproc)")" -- "$word") ;;
    --annotations | --init | --store | --remote-shared) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --graph | --events | --otlp | --report | --timeline | --trace) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --forget)
      # Only ages go without a run.
      if [[ $word == -* ]]; then mapfile -t COMPREPLY < <(compgen -W '--older-than' -- "$word"); fi ;;
    --cpu-limit | --from | --grace | --hosts-address | --hosts-command | --hosts-launcher | --join | --memory-limit | --name | --older-than | --only | --open-files | --remote | --remote-timeout | --tags | --time-limit | --resume | --settle | --show | --store-limit | --within | -e | -l) ;;
    *)
      # Behind the script all words are its own.
      for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
          --graph | --color | --events | --from | --grace | --older-than | --only | --progress | --report | --settle | --show | --store | --store-limit | --timeline | --trace | \
            --allow-env | --allow-read | --allow-write | --cpu-limit | --memory-limit | --open-files | --time | --time-limit | \
            --hosts | --hosts-address | --hosts-command | --hosts-launcher | --name | --remote | --remote-shared | --remote-timeout | --tags | \
            --within | --workers | --annotations | -e | -l)
            at=$((at + 1)) ;;
          --join | --forget | --init) [[ ${COMP_WORDS[at + 1]} != -* ]] && at=$((at + 1)) ;;
          --otlp) [[ ${COMP_WORDS[at + 1]} == *.@(json|jsonl|ndjson) || ${COMP_WORDS[at + 1]} == *://* || ${COMP_WORDS[at + 1]} == - ]] && at=$((at + 1)) ;;
          --) break ;;
          -?* | =) ;;
          text | json) [[ ${COMP_WORDS[at - 1]} == = ]] || break ;;
          *) [[ ${COMP_WORDS[at - 1]} == = ]] || break ;;
        esac
      done
      if ((at >= COMP_CWORD)) && [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '--allow-env --allow-net --allow-read --allow-run --allow-write
          --annotations --check --color --cpu-limit --events --follow --forget --from --grace --graph --help
          --hosts --hosts-address --hosts-command --hosts-launcher --init --insecure --join --keep --memory-limit --name --no-cache --no-progress --older-than --only --open-files --otlp
          --progress --remote --remote-check --remote-shared --remote-timeout --report --resume --runs
          --sandbox --sandbox=strict --settle --show --store --store-limit
          --summary --summary=json --tags --time --time-limit --timeline --trace --trust-code --verify --version
          --virtual-clock --why --within --workers
          -e -i -l -v -E -W' -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
  esac
}

complete -o filenames -F _flowlua flowlua

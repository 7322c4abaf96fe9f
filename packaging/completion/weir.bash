# SPDX-License-Identifier: GPL-2.0
# Bash completion for weir: commands, their options, and the servers and limits that the agent has now.

_weir_commands() {
	weir help 2>/dev/null | sed -n 's/^  \([a-z].\{13\}\) .*/\1/p' | sed 's/ *$//'
}

# Where they are listed: an example may have another command's.
_weir_options() {
	weir help "$@" 2>/dev/null | sed -nE 's/^  (    |-., )(--[a-z-]+).*/\2/p' | sort -u
}

_weir_servers() {
	weir metrics 2>/dev/null | sed -n 's/^weir_server_mode{server="\([^"]*\)".*/\1/p' | sort -u
}

_weir_limits() {
	weir metrics 2>/dev/null | sed -n 's/^weir_limit_dry_run{.*limit="\([^"/]*\)".*/\1/p' | sort -u
}

# What an option of a few words takes.
_weir_values() {
	case $1 in
	--by) [ "$command" != history ] || echo server; printf '%s\n' user namespace verb resource source connection limit request refusal ;;
	--sort) printf '%s\n' requests refused dry_run held ;;
	--decision) printf '%s\n' passed shed exempt dry_run_shed rejected dry_run_rejected ;;
	esac
}

# Those options of a command that take a value whose name in the help begins like this: '(FILE|DIR)', or '' for any.
_weir_valued() {
	local value=$1
	shift
	weir help "$@" 2>/dev/null | sed -nE "s/^  (   |-.,) (--[a-z-]+)=$value.*/\\1 \\2/p" | tr -d , | grep -o -- "-[^ ]*"
}

# What may stand at this place behind a command of these words.
_weir_arguments() {
	local command=$1 place=$2

	case $command:$place in
	detach:1 | pause:1 | resume:1 | reload:1 | status:1 | trace:1 | events:1 | audit:1 | top:1 | history:1 | suggest:1 | dry-run:1) _weir_servers ;;
	dry-run:2) printf 'on\noff\n' ;;
	"limit set":1) printf 'total\nnamespace\nuser\nsource-and-object\n'; _weir_limits ;;
	"limit delete":1) _weir_limits ;;
	help:1) _weir_commands | cut -d' ' -f1 | sort -u ;;
	help:2) [ "$before" != limit ] || _weir_commands | sed -n 's/^limit //p' ;;
	esac
}

_weir() {
	local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} first=2 word place=1 valued value=

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(_weir_commands | cut -d' ' -f1 | sort -u)" -- "$now")
		return
	fi
	if [ "$command" = limit ]; then
		if ((COMP_CWORD == 2)); then
			mapfile -t COMPREPLY < <(compgen -W "$(_weir_commands | sed -n 's/^limit //p')" -- "$now")
			return
		fi
		command="limit ${COMP_WORDS[2]}" first=3
	fi
	case $before in
	--server) mapfile -t COMPREPLY < <(compgen -W "$(_weir_servers)" -- "$now") && return ;;
	--by | --sort | --decision) mapfile -t COMPREPLY < <(compgen -W "$(_weir_values "$before")" -- "$now") && return ;;
	-o | --output) mapfile -t COMPREPLY < <(compgen -W "table json yaml" -- "$now") && return ;;
	esac
	if [[ $now == -* ]]; then
		# shellcheck disable=SC2086 # a command is of one word or of two
		mapfile -t COMPREPLY < <(compgen -W "$(_weir_options $command)" -- "$now")
		return
	fi
	# shellcheck disable=SC2086
	if [ "$command" = replay ] || [ "$before" = --netns ] || _weir_valued '(FILE|DIR)' $command | grep -qx -- "$before"; then
		mapfile -t COMPREPLY < <(compgen -f -- "$now")
		return
	fi
	# shellcheck disable=SC2086
	valued=$'\n'$(_weir_valued '' $command)$'\n'
	for word in "${COMP_WORDS[@]:first:COMP_CWORD-first}"; do
		if [[ $word == -* ]]; then
			value=
			[[ $valued != *$'\n'$word$'\n'* ]] || value=next
		elif [ "$word" != = ]; then
			[ -n "$value" ] || place=$((place + 1))
			value=
		fi
	done
	mapfile -t COMPREPLY < <(compgen -W "$(_weir_arguments "$command" "$place")" -- "$now")
}

complete -F _weir weir

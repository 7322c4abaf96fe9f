/* SPDX-License-Identifier: GPL-2.0 */
/* Every command, in the words of `weir help`, docs/reference/commands.md and the man page. */
#include "cli/cli.h"

#define SET_ARGUMENTS "total|namespace|user|source-and-object|NAME [SUBJECT]"
#define FILES "-f FILE|DIR|-..."

/* A paragraph is a line. */
/* clang-format off */
const struct command commands[] = {
	{ "agent", "", "Run the agent in the foreground.", cli_agent, cli_agent_options, NULL,
	  "The agent loads and pins the BPF programs, applies limits and serves metrics. Other commands talk to it through the socket STATE_DIR/weir.sock.\n"
	  "It logs to stderr, one event a line, and ends on SIGTERM or SIGINT.\n"
	  "Limits stay in force when the agent stops or is killed. The next agent takes over its counters and buckets.\n"
	  "Use one agent for each state directory. Two agents must not attach the same server.",
	  "weir agent --persist --policy /etc/weir/policy.d\nweir agent --metrics 0.0.0.0:9790 --monitor-group adm" },
	{ "attach", "NAME", "Attach a server, so that its requests are read and limited.", cli_attach,
	  cli_attach_options, &cli_attach_identity,
	  "Without limits all requests pass. Connections that are already open are not disturbed.",
	  "weir attach web --port 8080\nweir attach kube --port 6443 --dry-run\nweir attach api --listen 10.0.0.1:80 --trusted-proxy 10.1.0.0/16" },
	{ "detach", "NAME", "Detach a server and forget its limits.", cli_detach, cli_detach_options, NULL,
	  "Limiting stops at once. A translated connection is one that stayed open after a 429: weir has to rewrite its sequence numbers until it ends.\n"
	  "A server that has such connections drains: it lets everything pass, and is gone a minute after the last of them has been closed.\n"
	  "--force resets these connections instead. It also removes a server whose network namespace is gone.\n"
	  "--all succeeds without any server, too.",
	  "weir detach web\nweir detach --all" },
	{ "pause", "[NAME]", "Let all requests pass, without detaching.", cli_pause, NULL, NULL,
	  "Without NAME: all servers. A paused server stays paused when the agent is restarted.",
	  "weir pause\nweir pause web" },
	{ "resume", "[NAME]", "End a pause: enforce limits again.", cli_pause, NULL, NULL, "Without NAME: all servers.",
	  "weir resume\nweir resume web" },
	{ "dry-run", "NAME on|off", "Begin or end a server's dry run: decide and count, but refuse nothing.",
	  cli_dry_run, NULL, NULL,
	  "Limits, buckets and counters stay. What would have been refused is counted as dry_run_shed or "
	  "dry_run_rejected, and by its limit as dry_run_refused.",
	  "weir dry-run web on\nweir dry-run web off" },
	{ "reload", "[NAME]", "Read token files and address files again, as SIGHUP does.", cli_reload, NULL, NULL,
	  "A file with an error changes nothing. Without NAME: all servers. It fails without any server, as pause and resume do.",
	  "weir reload\nweir reload web" },
	{ "limit set", SET_ARGUMENTS, "Set a limit: the default for each subject, or an override for one.",
	  cli_limit_set, cli_limit_set_options, &cli_limit_rule,
	  "The limit total has one bucket for the whole server, namespace one for each namespace, user one for each user or address.\n"
	  "source-and-object has one for each pair of a source and an object of Kubernetes Events.\n"
	  "Any other NAME is a limit with rules, for the requests that its options match.\n"
	  "With SUBJECT the limit is an override for that subject. The parts of a combined key stand in the order namespace, user, group, source: ns1/alice.\n"
	  "A request takes a token from each limit that applies. If one of them has none left, the request is refused and takes no token at all.\n"
	  "A change applies from the next request on. A bucket keeps its tokens; a smaller burst cuts them down. Options that are not given keep their values.\n"
	  "The key and the rules of a limit cannot be changed: delete the limit first.",
	  "weir limit set total --qps 2k --burst 4k\nweir limit set user --qps 100/m --burst 20 --dry-run\nweir limit set user alice --qps 5 --burst 10\nweir limit set lists --key user --verb list --in-flight 9" },
	{ "limit delete", SET_ARGUMENTS, "Delete a limit, or the override for one subject.", cli_limit_delete,
	  cli_limit_delete_options, NULL,
	  "Deleting the default of a built-in limit keeps its overrides. Deleting a limit with rules deletes its overrides, too.",
	  "weir limit delete user alice\nweir limit delete lists --server web" },
	{ "limit list", "", "List limits and where they were set.", cli_limit_list, cli_limit_list_options, NULL, NULL,
	  "weir limit list\nweir limit list --server web --json" },
	{ "max-in-flight", "", "Set kube-apiserver's two limits on requests in flight.", cli_max_in_flight,
	  cli_max_in_flight_options, NULL,
	  "This sets the limits read-only-in-flight and mutating-in-flight. Neither applies to long-running requests (watch, exec, logs). 0 removes a limit.",
	  "weir max-in-flight --read-only 400 --mutating 200\nweir max-in-flight --read-only 0" },
	{ "explain", "[METHOD PATH]", "Show what would happen to a request or a connection now, and why.", cli_explain,
	  cli_explain_options, NULL,
	  "The programs in the kernel decide it with the limits in force. They take no token and count nothing.",
	  "weir explain GET /api/v1/pods --user alice\nweir explain POST / --source 10.1.2.3 --server web\n"
	  "weir explain --connection --source 10.1.2.3" },
	{ "apply", FILES, "Apply policy files.", cli_apply, cli_apply_options, NULL,
	  "All files are applied together, or none. A server or limit that an earlier apply has set is replaced.\n"
	  "Files that the agent follows (agent --policy) are in force by themselves. apply refuses them.",
	  "weir apply -f api.yaml\nweir apply -f policies --prune" },
	{ "delete", FILES, "Delete the objects that policy files contain.", cli_delete, cli_delete_options, NULL,
	  "A Throttle that attached its server takes it along. A server that \"weir attach\" attached stays attached.",
	  "weir delete -f api.yaml" },
	{ "diff", FILES, "Show what apply would change.", cli_diff, cli_diff_options, NULL,
	  "Exit status 0: nothing would change. 1: something would. 2: an error.", "weir diff -f api.yaml" },
	{ "check", FILES, "Check policy files. Needs neither root nor an agent.", cli_check_policy, cli_check_options,
	  NULL, NULL, "weir check -f api.yaml" },
	{ "export", "", "Print servers and limits in force as a policy file.", cli_export, cli_export_options, NULL,
	  NULL, "weir export > api.yaml" },
	{ "schema", "", "Print the JSON Schema of policy files.", cli_schema, NULL, NULL, NULL,
	  "weir schema > weir.schema.json" },
	{ "status", "[NAME]", "Show the state of servers: a line for each, and what needs attention.", cli_status,
	  cli_status_options, NULL,
	  "REQ/S and 429/S are of the last ten to twenty seconds. TLS is the share of requests that came in TLS records, which weir cannot read.\n"
	  "With NAME, or --wide, it shows everything: all counts, interfaces, the subjects refused most, limits, reasons and policy files.\n"
	  "With --watch on a terminal it waits for an agent that is gone or does not answer. In a pipe it ends then.\n"
	  "On a terminal it is coloured, unless NO_COLOR is set.",
	  "weir status\nweir status web\nweir status --watch\nweir status --json" },
	{ "top", "[NAME]", "Show who makes the load: users, namespaces, verbs, resources, addresses, limits.", cli_top,
	  cli_top_options, NULL,
	  "No limit is needed. On a terminal the table is drawn again each second, and keys change what it shows. In a pipe each interval prints its rows.\n"
	  "On a terminal it waits for an agent that is gone or does not answer, as one that is restarted. In a pipe it ends then.\n"
	  "REQ/S counts requests, and TLS records where weir cannot read requests. Such records have no user: --by source shows where they come from.\n"
	  "For a server with a lane inside, such records count only with --by source.\n"
	  "REFUSED/S counts requests that weir refused, DRY-RUN/S those that only a dry run let pass, HELD/S records that had to wait.\n"
	  "SHARE is the share of all requests of the server.\n"
	  "There are rows for the names with the most requests. Names with few requests may be missing. Counts are exact since FIRST SEEN.",
	  "weir top\nweir top web --by namespace\nweir top --once --json" },
	{ "history", "[NAME]", "Show requests and refusals of the last day, minute by minute.", cli_history,
	  cli_history_options, NULL,
	  "Each minute the agent writes down what the kernel counted: for each server and each value of --by the ten names with the most requests.\n"
	  "It keeps one day, also when it is restarted, and with agent --persist when the machine is rebooted. The current minute is shown as well.\n"
	  "Requests that came while no agent ran are all in the first minute of the next agent.\n"
	  "With --sum there is one row for each name. It has all requests of the name, and in PEAK/S the rate of its busiest minute.",
	  "weir history web --since 10m\nweir history --by refusal --filter alice\nweir history --by namespace --sum --json" },
	{ "suggest", "[NAME]", "Suggest limits from the history, as a policy file.", cli_suggest, cli_suggest_options,
	  NULL,
	  "Prints the servers as export does, and adds limits for total, user and namespace where there are none. Nothing is changed.\n"
	  "The rate is that of the busiest minute of the busiest name, and --headroom more. The burst is two seconds of that rate, and the mode is dry-run.\n"
	  "Comments explain the numbers. If nobody has asked, a comment says so and there is no limit.",
	  "weir suggest web > web.yaml\nweir suggest --since 1h --headroom 100" },
	{ "trace", "[NAME]", "Show requests as they are decided, until interrupted.", cli_trace, cli_trace_options,
	  NULL,
	  "A trace shows request lines as they came, query strings included. It shows no headers.\n"
	  "Requests that do not fit into the trace buffer are not shown; their number is printed on stderr.",
	  "weir trace web\nweir trace --decision shed --json" },
	{ "replay", "RECORDING", "Show what a policy would have decided on recorded requests.", cli_replay,
	  cli_replay_options, NULL,
	  "RECORDING is what weir trace --json has printed, or - for standard input. Needs root, but no agent. What is in force does not change.\n"
	  "The programs in the kernel decide each request again, as if it came at its recorded time. Buckets are full at the beginning.\n"
	  "A Throttle decides the requests of the server that it names.\n"
	  "A refused client would have retried later, or given up; a replay knows only the requests that came.",
	  "weir trace web --json --for 600 > web.jsonl\nweir replay --policy web.yaml web.jsonl" },
	{ "events", "[NAME]", "Show the latest refusals: when, whose request, which limit.", cli_events,
	  cli_events_options, NULL,
	  "The agent keeps the latest 1000. The kernel reports some 500 refusals a second of each server; the number of the others is printed on stderr.\n"
	  "Dry runs and held TLS are not shown: weir trace and weir top show them.\n"
	  "With --audit-log each refusal has the ID of its entry in that log. Requests that weir refuses on the wire never reach the server and have no entry.\n"
	  "An entry fits if user, verb, target, resource, namespace, peer and status are the same, and if the server was working on the request when weir decided.\n"
	  "It may have received the request at most --audit-window before that.\n"
	  "FITS is the number of entries that fit. If several fit, the ID is that of the one that was answered first. Each entry is used once.",
	  "weir events\nweir events web --follow --json\nweir events kube --audit-log /var/log/kubernetes/audit.log\nweir trace kube --json --for 600 > kube.jsonl && weir events --recording kube.jsonl --audit-log audit.log" },
	{ "audit", "[NAME]", "Show who changed servers and limits, and the values before and after.", cli_audit,
	  cli_audit_options, NULL,
	  "The agent writes down each change of servers and limits: when, by whom, by which command, and the values before and after.\n"
	  "Of a command it has the user, the process, and the user who logged in before a sudo. Of a followed policy file it has the file.\n"
	  "It keeps the latest changes in two files of 1 MiB, also when it is restarted, and with agent --persist when the machine is rebooted.\n"
	  "Commands that failed and changed nothing are only in the agent's log.\n"
	  "The table shows what differs; --json has all values.",
	  "weir audit\nweir audit web --since 24h --json" },
	{ "probe", "", "Show what weir can do on this kernel and in this network namespace.", cli_probe,
	  cli_probe_options, NULL,
	  "Needs root for most checks, but no agent. Leaves nothing behind. Exit status 0: everything works fully. 1: something does not.\n"
	  "With --binary it reads the binary of a Go server, without running it. It shows where weir could see requests inside it, or what is missing.\n"
	  "Exit status 0: it can. 1: it cannot.",
	  "weir probe\nweir probe --binary /usr/local/bin/kube-apiserver" },
	{ "uninstall", "", "Remove everything weir has in the kernel, and end the agent.", cli_uninstall,
	  cli_uninstall_options, NULL,
	  "Works with or without an agent. Limiting stops at once. Translated connections are those that stayed open after a 429.\n"
	  "The command waits until a minute after the last of them has been closed. Then it removes pins, links, filters and state files, also those of --persist.\n"
	  "If it is interrupted while it waits, nothing was removed.\n"
	  "With --force or --force-after nothing stands in the way. An agent that does not end within five seconds is killed.\n"
	  "What a version of weir with another layout of its data has in the kernel is removed, too.",
	  "weir uninstall" },
	{ "metrics", "", "Print the metrics as Prometheus text, once.", cli_metrics, NULL, NULL, NULL,
	  "weir metrics | grep dry_run" },
	{ "version", "", "Print the version.", cli_version, NULL, NULL, NULL, "weir version" },
	{ "help", "[COMMAND]", "List the commands, or show one command's options.", cli_help, NULL, NULL, NULL,
	  "weir help limit set" },
	{ 0 },
};
/* clang-format on */

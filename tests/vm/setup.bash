#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the scripts that run in a guest have in common: a server and a client in namespaces, and checks as TAP.
set -u
PATH=$PATH:/usr/sbin:/sbin

weir=build/weir
client=build/tests/vm/client
port=8080
connections=8
requests=500 # of each connection that meets loss
drain_s=150  # two lingerings of 60 s and what TCP needs before
scratch=$(mktemp -d)
export WEIR_STATE_DIR=$scratch/state WEIR_PIN_DIR=/sys/fs/bpf/weir-vm

tests=0
failures=0

note() {
	sed 's/^/# /'
}

# check NAME COMMAND...: a test; its result is the command's
check() {
	local name=$1
	shift
	tests=$((tests + 1))
	if "$@"; then
		echo "ok $tests - $name"
	else
		echo "not ok $tests - $name"
		failures=$((failures + 1))
		return 1
	fi
}

# quietly COMMAND...: its output only when it fails
quietly() {
	"$@" >"$scratch/output" 2>&1 && return
	note <"$scratch/output"
	return 1
}

# --- programs

# load OBJECT [PROGRAM...]: a note for each program, with the instructions that the verifier processed
load() {
	if build/tests/vm/load "$@" >"$scratch/load" 2>&1; then
		sed "s/^/# verified $(basename "$1" .o) /" "$scratch/load"
	else
		note <"$scratch/load"
		return 1
	fi
}

# --- a server and a client, each in a namespace

namespaces_make() {
	ip netns add server
	ip netns add client
	ip -n server link set lo up
	ip link add veth-s netns server type veth peer name veth-c netns client
	ip -n server addr add 10.77.0.1/24 dev veth-s
	ip -n client addr add 10.77.0.2/24 dev veth-c
	ip -n server addr add fd77::1/64 dev veth-s nodad
	ip -n client addr add fd77::2/64 dev veth-c nodad
	ip -n server link set veth-s up
	ip -n client link set veth-c up
}

server_start() {
	local n
	for ((n = 0; n < 30000; n++)); do
		printf '%09d\n' $n
	done >"$scratch/large"
	chmod 755 "$scratch"
	cat >"$scratch/nginx.conf" <<-EOF
		user root;
		worker_processes 2;
		pid $scratch/nginx.pid;
		error_log $scratch/error.log info;
		events {
			worker_connections 1024;
		}
		http {
			access_log off;
			log_format user '\$http_x_remote_user';
			keepalive_requests 1000000;
			# A starved guest is slow: what the server gives up on says nothing of weir.
			keepalive_timeout 1h;
			client_header_timeout 1h;
			client_body_timeout 1h;
			send_timeout 1h;
			server {
				listen $port;
				listen [::]:$port;
				access_log $scratch/access.log user;
				add_header X-Path \$request_uri;
				# By way of itself: else it answers before a body has come, and weir gives up the connection (answered_early).
				location / {
					proxy_pass http://unix:$scratch/echo:;
				}
				location /large/ {
					root $scratch;
					rewrite ^ /large break;
				}
			}
			server {
				listen unix:$scratch/echo;
				location / {
					return 200 \$request_uri;
				}
			}
		}
	EOF
	ip netns exec server nginx -e "$scratch/error.log" -c "$scratch/nginx.conf"
}

# agent_start [PROGRAM...]: and what else will run. It is read now: where waiting takes no time (VM_OPTIONS in docs/internals/kernels.md), a
# page that comes from the machine's disk in the midst of a command would cost it all its patience.
agent_start() {
	cat $weir "$@" >/dev/null 2>&1
	$weir agent --metrics off >"$scratch/agent.log" 2>&1 &
	agent=$!
	local n
	for ((n = 0; n < 200; n++)); do
		$weir status >/dev/null 2>&1 && return
		sleep 0.1
	done
	note <"$scratch/agent.log"
	return 1
}

attach() {
	quietly $weir attach web --port $port --netns server --trusted-proxy 127.0.0.0/8 \
		--trusted-proxy 10.77.0.0/24 --trusted-proxy ::1/128 --trusted-proxy fd77::/64
}

# seen_by_server USER AT_LEAST: how many the server has logged, which it does when the answer is on its way already
seen_by_server() {
	local n seen
	for ((n = 0; n < 50; n++)); do
		seen=$(grep -cx "$1" "$scratch/access.log")
		[[ $seen -lt $2 ]] || break
		sleep 0.1
	done
	echo "$seen"
}

# drive NAMESPACE ADDRESS USER REQUESTS: sets passed, shed, ms
drive() {
	local user=$3 result seen
	passed=0 shed=0 ms=0
	result=$(ip netns exec "$1" $client "$2" $port "$user" $connections "$4" 2>"$scratch/client")
	local status=$?
	head -5 "$scratch/client" | note
	eval "$result"
	seen=$(seen_by_server "$user" "$passed")
	echo "# $user at $2: $result, $seen seen by the server"
	[[ $status == 0 && $passed == "$seen" ]]
}

# Only the burst passes, however often anything is sent again.
exact() {
	local namespace=$1 address=$2 user=$3 of=$4
	$weir limit set user "$user" --qps 0 --burst 50 >/dev/null || return 1
	drive "$namespace" "$address" "$user" "$of" &&
		[[ $passed == 50 && $shed == $((connections * of - 50)) ]]
}

unlimited() {
	drive "$1" "$2" "$3" "$4" && [[ $passed == $((connections * $4)) ]]
}

# Both kinds of answer on every connection, and nobody past the limit in the time it took.
mixed() {
	local user=$3 qps=25 burst=100 # also a guest that does 80 requests a second is over it
	$weir limit set user "$user" --qps $qps --burst $burst >/dev/null || return 1
	drive "$1" "$2" "$user" "$4" &&
		[[ $shed -gt $burst && $passed -gt $burst && $passed -le $((burst + qps * ms / 1000 + 1)) ]]
}

# netem IMPAIRMENT...: on both ends
netem() {
	tc -n server qdisc replace dev veth-s root netem "$@" &&
		tc -n client qdisc replace dev veth-c root netem "$@"
}

# Entries end by themselves: at once where nothing was translated, else when both sides are surely done.
drained() {
	local n left
	for ((n = 0; n < drain_s; n++)); do
		left=$($weir status --json | jq '.servers[0].connections')
		[[ $left == 0 ]] && return
		sleep 1
	done
	echo "# $left connections left"
	return 1
}

agent_stop() {
	kill $agent
	wait $agent
}

kernel_log_is_clean() {
	dmesg | grep -E -A30 'BUG|WARNING|Oops|Call Trace|rcu_.*stall|refcount_t' | note
	[[ ${PIPESTATUS[1]} == 1 ]]
}

# SPDX-License-Identifier: GPL-2.0
#
# What mostly happens in a BPF program stands in one piece: LLVM's text of it, read twice, comes out with those blocks of each function
# last that only unlikely branches lead to (WEIR_LIKELY, WEIR_UNLIKELY). LLVM itself leaves BPF's blocks in the order of the source, where
# each rare case is jumped over.
#
#     awk -f bpf/layout.awk IN.ll IN.ll > OUT.ll

# LLVM numbers what has no name by its place. A name is given to it, because places change.
function named(line,   done)
{
	while (match(line, /%[0-9]+/)) {
		done = done substr(line, 1, RSTART) "v" substr(line, RSTART + 1, RLENGTH - 1)
		line = substr(line, RSTART + RLENGTH)
	}
	return done line
}

function edge(block, to, unlikely)
{
	from[++edges] = block
	target[edges] = to
	is_unlikely[edges] = unlikely
}

# Where the block goes to, as its last instruction says: a branch is unlikely that is taken less than once in a hundred times.
function ends(block, text,   weight, n, i, all)
{
	if (match(text, /!prof ![0-9]+/))
		n = split(weights[substr(text, RSTART + 6, RLENGTH - 6)], weight, " ")
	for (i = 1; i <= n; i++)
		all += weight[i]
	for (i = 1; match(text, /label %[-A-Za-z$._0-9]+/); i++) {
		edge(block, substr(text, RSTART + 7, RLENGTH - 7), n && weight[i] * 100 < all)
		text = substr(text, RSTART + RLENGTH)
	}
}

function find_likely(   i, to, found)
{
	likely[1] = 1
	do {
		found = 0
		for (i = 1; i <= edges; i++) {
			to = number[target[i]]
			if (likely[from[i]] && !is_unlikely[i] && !likely[to])
				likely[to] = found = 1
		}
	} while (found)
}

function print_function(   i)
{
	find_likely()
	for (i = 1; i <= blocks; i++)
		if (likely[i])
			printf "%s", text_of[i]
	for (i = 1; i <= blocks; i++)
		if (!likely[i])
			printf "%s", text_of[i]
	split("", likely)
	split("", number)
	split("", text_of)
	edges = blocks = 0
}

# --- the first time: how likely branches are

NR == FNR {
	if (/ = !.!"branch_weights"/) {
		name = $1
		sub(/.*"branch_weights"/, "")
		gsub(/i32|[,}]/, " ")
		weights[name] = $0
	}
	next
}

# --- the second time: functions

# The first block has the number after those of the parameters.
/^define / {
	print named($0)
	blocks = 1
	text_of[1] = "v" gsub(/%[0-9]+/, "") ":\n"
	next
}

blocks && /^}/ {
	print_function()
}

!blocks {
	print
	next
}

{ line = named($0) }

/^[-A-Za-z$._0-9]+:/ {
	sub(/^[0-9]/, "v&", line)
	number[substr(line, 1, index(line, ":") - 1)] = ++blocks
}

{ text_of[blocks] = text_of[blocks] line "\n" }

$1 == "br" { ends(blocks, line) }

# A switch has a line for each case.
$1 == "switch" { cases = " " }

cases { cases = cases line }

cases && /^  \]/ {
	ends(blocks, cases)
	cases = ""
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stands in for vmlinux.h where the build host has no BTF: the stable types from the uapi headers, and of the
 * kernel's own structs the fields that weir reads. CO-RE finds where those really are when the programs are loaded,
 * so neither the order nor the offsets here mean anything.
 */
#ifndef WEIR_VMLINUX_MIN_H
#define WEIR_VMLINUX_MIN_H

#include <linux/types.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

typedef _Bool bool;

enum {
	false = 0,
	true = 1,
};

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct netns_ipv4 {
	u8 sysctl_tcp_syncookies;
};

struct net {
	u64 net_cookie;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_reuse : 4;
	unsigned char skc_reuseport : 1;
	possible_net_t skc_net;
	u32 skc_rcv_wnd; /* of a request_sock */
	u32 skc_window_clamp;
};

struct sock_reuseport {
	unsigned int synq_overflow_ts;
};

struct sock {
	struct sock_common __sk_common;
	struct {
		int owned;
	} sk_lock;
	struct {
		int len;
	} sk_backlog;
	int sk_rcvbuf;
	u32 sk_ack_backlog; /* of a listener */
	u32 sk_max_ack_backlog;
	struct sock_reuseport *sk_reuseport_cb;
};

struct inet_sock {
	struct sock sk;
};

typedef struct {
	int counter;
} atomic_t;

struct request_sock_queue {
	atomic_t qlen;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	struct request_sock_queue icsk_accept_queue; /* of a listener */
	struct {
		u32 lrcvtime;
	} icsk_ack;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct tcp_options_received {
	int ts_recent_stamp;
	u32 ts_recent;
	u16 snd_wscale : 4, rcv_wscale : 4;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 bytes_received;
	u64 bytes_acked;
	u64 bytes_sent;
	u32 segs_in;
	u32 rcv_nxt;
	u32 rcv_wup;
	u32 rcv_wnd;
	u32 snd_nxt;
	u32 snd_una;
	u32 max_window;
	u32 lsndtime;
	u8 bpf_sock_ops_cb_flags;
	bool is_mptcp;
	struct tcp_options_received rx_opt;
	struct rb_root out_of_order_queue;
};

struct request_sock {
	struct sock_common __req_common;
	u32 ts_recent;
};

struct inet_request_sock {
	struct request_sock req;
	u16 snd_wscale : 4, rcv_wscale : 4, tstamp_ok : 1, sack_ok : 1, wscale_ok : 1;
};

struct tcp_request_sock {
	struct inet_request_sock req;
	u32 rcv_isn;
	u32 snt_isn;
};

struct sk_buff {
	unsigned int end; /* from head on */
	unsigned char *head;
};

struct skb_shared_info {
	u8 flags;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct bpf_map;

struct signal_struct {
	atomic_t live;
};

struct task_struct {
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	u64 start_boottime;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
};

struct userfaultfd_ctx;

struct vm_userfaultfd_ctx {
	struct userfaultfd_ctx *ctx;
};

struct vm_area_struct {
	struct file *vm_file;
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};

#pragma clang attribute pop

/* As programs get them on amd64: not the kernel's to move. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#endif

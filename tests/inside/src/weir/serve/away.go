// SPDX-License-Identifier: GPL-2.0

package serve

import (
	"net"
	"os"
	"syscall"
	"unsafe"
)

// An away listener's peers are not in memory when they are looked for: the kernel has to bring their names each time.
type away struct{ net.Listener }

func (listener away) Accept() (net.Conn, error) {
	conn, err := listener.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &awayConn{Conn: conn, peer: newAwayPeer(conn.RemoteAddr().String())}, nil
}

// Shared memory: the kernel keeps what it has when the process lets go of its pages. Nothing here unmaps it.
type awayPeer struct {
	page   []byte
	length int
}

func newAwayPeer(name string) *awayPeer {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS)
	check(err)
	return &awayPeer{page, copy(page, name)}
}

func (*awayPeer) Network() string { return "tcp" }

func (peer *awayPeer) String() string {
	name := peer.page[:peer.length]
	return *(*string)(unsafe.Pointer(&name))
}

type awayConn struct {
	net.Conn
	peer *awayPeer
}

func (conn *awayConn) RemoteAddr() net.Addr { return conn.peer }

// A request comes: what there was of its peer goes.
func (conn *awayConn) Read(to []byte) (int, error) {
	n, err := conn.Conn.Read(to)
	check(syscall.Madvise(conn.peer.page, syscall.MADV_DONTNEED))
	return n, err
}

// SPDX-License-Identifier: GPL-2.0

package user

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Never is a user whose name is never in memory: this process has told the kernel that it brings it by itself (userfaultfd), and does not.
const Never = "never"

const (
	sysUserfaultfd   = 323
	uffdioAPI        = 0xc018aa3f
	uffdioRegister   = 0xc020aa00
	registersMissing = 1
)

var (
	onceNever sync.Once
	unbrought []byte
)

func ioctl(fd, request uintptr, argument unsafe.Pointer) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument)); errno != 0 {
		panic(errno)
	}
}

func makeUnbrought() {
	size := os.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	fd, _, errno := syscall.Syscall(sysUserfaultfd, syscall.O_CLOEXEC, 0, 0)
	if errno != 0 {
		panic(errno)
	}
	version := struct{ api, features, ioctls uint64 }{api: 0xaa}
	ioctl(fd, uffdioAPI, unsafe.Pointer(&version))
	register := struct{ start, size, mode, ioctls uint64 }{
		start: uint64(uintptr(unsafe.Pointer(&memory[0]))), size: uint64(size), mode: registersMissing}
	ioctl(fd, uffdioRegister, unsafe.Pointer(&register))
	unbrought = memory
}

// NewNever makes that user, whose name nothing here reads.
func NewNever() Info {
	onceNever.Do(makeUnbrought)
	name := unbrought[:len(Never)]
	return &DefaultInfo{Name: *(*string)(unsafe.Pointer(&name))}
}

// SPDX-License-Identifier: GPL-2.0

package user

import (
	"os"
	"reflect"
	"sync"
	"syscall"
	"unsafe"
)

// Away is a user whose name is not in memory when it is looked for: the kernel has to bring it each time.
const Away = "away"

var (
	once sync.Once
	page []byte
)

// Shared memory: the kernel keeps what it has when the process lets go of its pages.
func makePage() {
	var err error
	page, err = syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	copy(page, Away)
}

func addressOf(text *string) uintptr { return (*reflect.StringHeader)(unsafe.Pointer(text)).Data }

// NewAway makes that user, whose name nothing here reads.
func NewAway() Info {
	once.Do(makePage)
	name := page[:len(Away)]
	away := &DefaultInfo{Name: *(*string)(unsafe.Pointer(&name))}
	GoAway(away)
	return away
}

// GoAway lets go of the user's name again.
func GoAway(info Info) {
	who, ok := info.(*DefaultInfo)
	if !ok || who == nil || page == nil || addressOf(&who.Name) != uintptr(unsafe.Pointer(&page[0])) {
		return
	}
	if err := syscall.Madvise(page, syscall.MADV_DONTNEED); err != nil {
		panic(err)
	}
}

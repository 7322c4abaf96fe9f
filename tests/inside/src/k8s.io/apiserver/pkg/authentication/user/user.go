// SPDX-License-Identifier: GPL-2.0

// Package user has the shapes of Kubernetes' package of this name, as far as weir reads them.
package user

type Info interface {
	GetName() string
	GetUID() string
	GetGroups() []string
	GetExtra() map[string][]string
}

type DefaultInfo struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

func (i *DefaultInfo) GetName() string               { return i.Name }
func (i *DefaultInfo) GetUID() string                { return i.UID }
func (i *DefaultInfo) GetGroups() []string           { return i.Groups }
func (i *DefaultInfo) GetExtra() map[string][]string { return i.Extra }

// Other is a user that weir does not know.
type Other struct{ DefaultInfo }

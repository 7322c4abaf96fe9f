// SPDX-License-Identifier: GPL-2.0

// Package authorizer has the shapes of Kubernetes' package of this name, as far as weir reads them.
package authorizer

import "k8s.io/apiserver/pkg/authentication/user"

type Attributes interface {
	GetUser() user.Info
	GetVerb() string
	GetNamespace() string
	GetResource() string
}

type AttributesRecord struct {
	User            user.Info
	Verb            string
	Namespace       string
	APIGroup        string
	APIVersion      string
	Resource        string
	Subresource     string
	Name            string
	ResourceRequest bool
	Path            string
}

func (a AttributesRecord) GetUser() user.Info   { return a.User }
func (a AttributesRecord) GetVerb() string      { return a.Verb }
func (a AttributesRecord) GetNamespace() string { return a.Namespace }
func (a AttributesRecord) GetResource() string  { return a.Resource }

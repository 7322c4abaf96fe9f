// SPDX-License-Identifier: GPL-2.0

// Package flowcontrol is called as Kubernetes' package of this name is.
package flowcontrol

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

type RequestDigest struct {
	RequestInfo *request.RequestInfo
	User        user.Info
}

type configController struct{ level string }

func New() Interface { return &configController{level: "all"} }

// What is to be rejected, its name says.
func rejects(digest RequestDigest) bool { return digest.RequestInfo.Name == "rejected" }

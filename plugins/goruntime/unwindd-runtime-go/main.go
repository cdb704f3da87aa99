// SPDX-License-Identifier: Apache-2.0

// Command unwindd-runtime-go is the plugin of Go's runtime as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/goruntime"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.ServeRuntime(goruntime.New()) }

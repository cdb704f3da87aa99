// SPDX-License-Identifier: Apache-2.0

// Command unwindd-runtime-cpython is the plugin of CPython as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/cpython"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.ServeRuntime(cpython.New()) }

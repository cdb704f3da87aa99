// SPDX-License-Identifier: Apache-2.0

// Command unwindd-runtime-ruby is the plugin of CRuby as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/ruby"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.ServeRuntime(ruby.New()) }

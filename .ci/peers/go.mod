module github.com/unwindd/unwindd/.ci/peers

go 1.26.0

require (
	github.com/go-delve/delve v1.27.2
	github.com/unwindd/unwindd v0.0.0
)

replace github.com/unwindd/unwindd => ../..

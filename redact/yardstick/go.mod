// A module of its own, so that the program never links what it is measured by.
module writ/redact/yardstick

go 1.26.0

require writ v0.0.0

replace writ => ../..

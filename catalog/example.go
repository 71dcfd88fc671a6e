package catalog

func (l *loader) examples() {}

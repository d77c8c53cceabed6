int flowlua_probe(void);
